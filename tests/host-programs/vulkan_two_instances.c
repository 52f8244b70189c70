// Two Vulkan instances at once, ggml's and that of another application, each with a device that
// works while the other one's comes and goes.
#include "tiny_vulkan.h"

typedef struct {
    Handle instance, device;
} Vulkan;

static Vulkan start(const char * application) {
    Vulkan vulkan;
    if (create_instance(application, &vulkan.instance) != 0) exit(2);
    if (create_device(first_physical(vulkan.instance), NULL, NULL, &vulkan.device) != 0) exit(3);
    return vulkan;
}

static void stop(Vulkan vulkan) {
    destroy_device(vulkan.device);
    destroy_instance(vulkan.instance);
}

int main(void) {
    alarm(60);
    for (int round = 0; round < 10; round++) {
        // The older of the two goes first, and the new one may get its address.
        Vulkan ggml = start("ggml-vulkan"), other = start("a window");
        printf("%u %u\n", fill(ggml.device, 1), fill(other.device, 2));
        stop(ggml);
        ggml = start("ggml-vulkan");
        printf("%u %u\n", fill(other.device, 3), fill(ggml.device, 4));
        stop(other);
        other = start(NULL);
        printf("%u %u\n", fill(ggml.device, 5), fill(other.device, 6));
        stop(other);
        stop(ggml);
    }
    // One that nobody destroys.
    printf("%u\n", fill(start("ggml").device, 7));
    return 0;
}
