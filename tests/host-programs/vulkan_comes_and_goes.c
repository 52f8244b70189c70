// Makes and destroys Vulkan instances and devices, as ggml or as another application, and lets
// each device work. Says on standard error by how many kB the process has grown meanwhile.
#include "tiny_vulkan.h"

// Memory of the process that is no file's, in kB.
static long own_memory(void) {
    long kilobytes = 0;
    char line[256];
    FILE * status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "RssAnon: %ld", &kilobytes);
    if (status) fclose(status);
    return kilobytes;
}

int main(int argc, char ** argv) {
    alarm(120);
    const char * application = argv[1];
    const int rounds = atoi(argv[2]), devices = atoi(argv[3]);
    long before = 0, right = 0;
    for (int round = 0; round < rounds; round++) {
        // What is made once was made by then.
        if (round == rounds / 4) before = own_memory();
        Handle instance, device[8];
        if (create_instance(application, &instance) != 0) return 2;
        Handle physical = first_physical(instance);
        for (int i = 0; i < devices; i++) {
            if (create_device(physical, NULL, NULL, &device[i]) != 0) return 3;
        }
        for (int i = 0; i < devices; i++) {
            right += fill(device[i], 1000 * round + i) == (uint32_t) (1000 * round + i);
        }
        for (int i = 0; i < devices; i++) destroy_device(device[i]);
        destroy_instance(instance);
    }
    printf("rounds=%d right=%ld\n", rounds, right);
    fprintf(stderr, "grew=%ld\n", own_memory() - before);
    return 0;
}
