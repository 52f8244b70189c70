// Asks Vulkan for what it refuses, and then for what it does not; destroys what is nothing. The
// application's name is given. Its wishes lie in memory that nobody can write to.
#include "tiny_vulkan.h"

static const struct {
    int type;
    void * next;
    uint32_t host_query_reset;
} wishes = { 1000261000, NULL, 0 };

int main(int argc, char ** argv) {
    alarm(60);
    Handle instance = NULL, device = NULL;
    const char * missing = "VK_EXT_there_is_none";
    InstanceInfo info = { 1, NULL, 0, NULL, 0, NULL, 1, &missing };
    printf("%d\n", VK(int, vkCreateInstance, const void *, const void *, Handle *)(&info, NULL, &instance));
    destroy_instance(NULL);
    destroy_device(NULL);
    if (create_instance(argv[1], &instance) != 0) return 2;
    Handle physical = first_physical(instance);
    for (int round = 0; round < 3; round++) {
        printf("%d\n", create_device(physical, NULL, missing, &device));
        if (create_device(physical, &wishes, NULL, &device) != 0) return 3;
        printf("%u\n", fill(device, 8));
        destroy_device(device);
        printf("%d\n", create_device(physical, NULL, missing, &device));
    }
    destroy_instance(instance);
    return 0;
}
