// A plugin host closes ggml and opens it again: pointers into the old copy are
// stale, and the new copy may lie at the same address.
#include "tiny_ggml.h"

int main(int argc, char ** argv) {
    (void) argc;
    char base[4096], cpu[4096];
    // argv[2] and argv[3]: libggml-base and a CPU backend's library.
    snprintf(base, sizeof base, "%s/%s", argv[1], argv[2]);
    snprintf(cpu, sizeof cpu, "%s/%s", argv[1], argv[3]);
    for (int round = 0; round < 3; round++) {
        void * base_handle = dlopen(base, RTLD_NOW | RTLD_GLOBAL);
        void * cpu_handle = dlopen(cpu, RTLD_NOW | RTLD_LOCAL);
        if (!base_handle || !cpu_handle) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        struct tiny_session session = {0};
        void * init = dlsym(cpu_handle, "ggml_backend_cpu_init");
        session.backend = ((void * (*) (void)) init)();
        typedef void * (*sched_new)(void **, void *, int, size_t, bool, bool);
        session.scheduler =
            TINY(sched_new, "ggml_backend_sched_new")(&session.backend, NULL, 1, 256, false, true);
        tiny_compute(&session, 2);
        TINY(void (*)(void *), "ggml_free")(session.context);
        TINY(void (*)(void *), "ggml_backend_sched_free")(session.scheduler);
        TINY(void (*)(void *), "ggml_backend_free")(session.backend);
        dlclose(cpu_handle);
        dlclose(base_handle);
    }
    return 0;
}
