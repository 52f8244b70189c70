// Uses Vulkan while other threads ask for and change the environment, and opens a library
// afterwards. Tells what changed around it: variables, and where it finds the loader's function.
#include "tiny_vulkan.h"

#include <pthread.h>
#include <stdatomic.h>

extern char ** environ;
static atomic_int done;

static void * change_environment(void * name) {
    for (int i = 0; !done; i++) {
        setenv(name, i % 2 ? "one" : "two", 1);
        if (!getenv(name)) exit(4);
        usleep(10);
    }
    return NULL;
}

static int variables(void) {
    int count = 0;
    while (environ[count]) count++;
    return count;
}

static unsigned length_of(const char * name) {
    const char * value = getenv(name);
    return value ? (unsigned) strlen(value) : 0;
}

int main(int argc, char ** argv) {
    alarm(60);
    const char * own[] = { "FIRST", "SECOND", "THIRD" };
    const char * watched[] = { "VK_ADD_LAYER_PATH", "VK_INSTANCE_LAYERS", "GGML_CUDA_GRAPH_CHUNK_SIZE" };
    pthread_t threads[3];
    unsigned lengths[3];
    for (int i = 0; i < 3; i++) {
        setenv(own[i], "one", 1);
        lengths[i] = length_of(watched[i]);
    }
    char ** place = environ;
    const int count = variables();
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, change_environment, (void *) own[i]);
    for (int round = 0; round < 3; round++) {
        Handle instance, device;
        if (create_instance(argv[1], &instance) != 0) return 2;
        if (create_device(first_physical(instance), NULL, NULL, &device) != 0) return 3;
        printf("%u\n", fill(device, 9));
        destroy_device(device);
        destroy_instance(instance);
    }
    void * (* volatile open)(const char *, int) = dlopen;
    Dl_info where;
    dladdr((void *) open, &where);
    void * opened = dlopen("libgcc_s.so.1", RTLD_NOW);
    printf("dlopen in %s, found=%d\n", strrchr(where.dli_fname, '/'), dlsym(opened, "_Unwind_Backtrace") != NULL);
    dlclose(opened);
    done = 1;
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        printf("%s is %s\n", watched[i], lengths[i] == length_of(watched[i]) ? "as it was" : "changed");
    }
    printf("environment moved=%d, variables added=%d\n", environ != place, variables() - count);
    return 0;
}
