// For hosts that open and close the library of a backend themselves.
#ifndef TINY_PLUGIN_H
#define TINY_PLUGIN_H
#include "tiny_ggml.h"

static inline void * tiny_open_library(const char * directory, const char * name, int mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    void * library = dlopen(path, RTLD_NOW | mode);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(91);
    }
    return library;
}

static inline struct tiny_session tiny_start_on(void * library) {
    struct tiny_session session = {0};
    session.backend = ((void * (*)(void)) dlsym(library, "ggml_backend_cpu_init"))();
    ((void (*)(void *, int)) dlsym(library, "ggml_backend_cpu_set_n_threads"))(session.backend, 1);
    typedef void * (*sched_new)(void **, void *, int, size_t, bool, bool);
    session.scheduler =
        TINY(sched_new, "ggml_backend_sched_new")(&session.backend, NULL, 1, 256, false, true);
    return session;
}

static inline void tiny_end(struct tiny_session * session) {
    TINY(void (*)(void *), "ggml_free")(session->context);
    TINY(void (*)(void *), "ggml_backend_sched_free")(session->scheduler);
    TINY(void (*)(void *), "ggml_backend_free")(session->backend);
}

#endif
