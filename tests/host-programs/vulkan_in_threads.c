// Threads with Vulkan instances and devices of their own, as ggml and as another application,
// while one device works all the time.
#include "tiny_vulkan.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_int right, done;

static void * come_and_go(void * application) {
    for (int round = 0; round < 15; round++) {
        Handle instance, device;
        if (create_instance(application, &instance) != 0) exit(2);
        if (create_device(first_physical(instance), NULL, NULL, &device) != 0) exit(3);
        right += fill(device, round) == (uint32_t) round;
        destroy_device(device);
        destroy_instance(instance);
    }
    done++;
    return NULL;
}

static void * work_on(void * device) {
    int wrong = 0;
    for (uint32_t value = 0; done < 4; value++) wrong += fill(device, value) != value;
    printf("wrong=%d\n", wrong);
    return NULL;
}

int main(void) {
    alarm(120);
    Handle instance, device;
    if (create_instance("ggml", &instance) != 0) return 2;
    if (create_device(first_physical(instance), NULL, NULL, &device) != 0) return 3;
    pthread_t threads[5];
    pthread_create(&threads[4], NULL, work_on, device);
    for (int i = 0; i < 4; i++) {
        pthread_create(&threads[i], NULL, come_and_go, i % 2 ? "ggml" : "another");
    }
    for (int i = 0; i < 5; i++) pthread_join(threads[i], NULL);
    destroy_device(device);
    destroy_instance(instance);
    printf("right=%d\n", right);
    return 0;
}
