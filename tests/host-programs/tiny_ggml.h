// Enough of ggml's public C API to compute a small graph, looked up at run time
// as the dynamic linker would for a linked program. argv[1] of every host
// program is the directory of the libraries.

#ifndef TINY_GGML_H
#define TINY_GGML_H

#include <dirent.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tiny_init_params {
    size_t bytes;
    void * buffer;
    bool no_alloc;
};

struct tiny_session {
    void * backend;
    void * scheduler;
    void * context;
};

static inline void * tiny_symbol(const char * name) {
    void * address = dlsym(RTLD_DEFAULT, name);
    if (!address) {
        fprintf(stderr, "no %s\n", name);
        exit(90);
    }
    return address;
}

// Calls ggml's function `name` with the given type.
#define TINY(type, name) ((type) tiny_symbol(name))

static inline void tiny_open_one(const char * directory, const char * prefix) {
    DIR * entries = opendir(directory);
    struct dirent * entry;
    while (entries && (entry = readdir(entries))) {
        const char * name = entry->d_name;
        size_t length = strlen(name);
        bool library = length > 3 && strcmp(name + length - 3, ".so") == 0;
        if (!library || strncmp(name, prefix, strlen(prefix)) != 0) {
            continue;
        }
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, name);
        if (!dlopen(path, RTLD_NOW | RTLD_GLOBAL)) {
            fprintf(stderr, "%s\n", dlerror());
            exit(91);
        }
    }
    if (entries) {
        closedir(entries);
    }
}

static inline void tiny_open(const char * directory) {
    tiny_open_one(directory, "libggml-base");
    tiny_open_one(directory, "libggml.");
    void * load = dlsym(RTLD_DEFAULT, "ggml_backend_load_all_from_path");
    if (load) {
        ((void (*)(const char *)) load)(directory);
    }
}

// A function that the backend's library has for the asking.
static inline void * tiny_proc(void * backend, const char * name) {
    void * device = TINY(void * (*)(void *), "ggml_backend_get_device")(backend);
    void * reg = TINY(void * (*)(void *), "ggml_backend_dev_backend_reg")(device);
    typedef void * (*get_proc)(void *, const char *);
    return TINY(get_proc, "ggml_backend_reg_get_proc_address")(reg, name);
}

static inline void tiny_stop_if(void * backend, bool (*callback)(void *), void * data) {
    void * set = tiny_proc(backend, "ggml_backend_set_abort_callback");
    ((void (*)(void *, bool (*)(void *), void *)) set)(backend, callback, data);
}

static inline struct tiny_session tiny_start(int threads) {
    struct tiny_session session;
    typedef void * (*by_type)(int, const char *);
    session.backend = TINY(by_type, "ggml_backend_init_by_type")(0, NULL);
    void * set = tiny_proc(session.backend, "ggml_backend_set_n_threads");
    ((void (*)(void *, int)) set)(session.backend, threads);
    typedef void * (*sched_new)(void **, void *, int, size_t, bool, bool);
    session.scheduler =
        TINY(sched_new, "ggml_backend_sched_new")(&session.backend, NULL, 1, 256, false, true);
    session.context = NULL;
    return session;
}

// Two nodes that ggml computes as one, to be the last of a graph.
static inline void * tiny_norm_and_scale(void * context, void * tensor) {
    void * norm = TINY(void * (*)(void *, void *, float), "ggml_rms_norm")(context, tensor, 1e-5f);
    return TINY(void * (*)(void *, void *, void *), "ggml_mul")(context, norm, tensor);
}

// A graph of `count` additions, with `last` applied to the result if given.
static inline void * tiny_build(struct tiny_session * session, int count, void * (*last)(void *, void *)) {
    if (session->context) {
        TINY(void (*)(void *), "ggml_free")(session->context);
    }
    struct tiny_init_params params = {1 << 20, NULL, true};
    session->context = TINY(void * (*)(struct tiny_init_params), "ggml_init")(params);
    void * tensor = TINY(void * (*)(void *, int, int64_t), "ggml_new_tensor_1d")(session->context, 0, 64);
    TINY(void (*)(void *), "ggml_set_input")(tensor);
    typedef void * (*binary)(void *, void *, void *);
    for (int i = 0; i < count; i++) {
        tensor = TINY(binary, "ggml_add")(session->context, tensor, tensor);
    }
    if (last) {
        tensor = last(session->context, tensor);
    }
    typedef void * (*new_graph)(void *, size_t, bool);
    void * graph = TINY(new_graph, "ggml_new_graph_custom")(session->context, 256, false);
    TINY(void (*)(void *, void *), "ggml_build_forward_expand")(graph, tensor);
    TINY(void (*)(void *), "ggml_backend_sched_reset")(session->scheduler);
    TINY(bool (*)(void *, void *), "ggml_backend_sched_alloc_graph")(session->scheduler, graph);
    return graph;
}

static inline int tiny_run(struct tiny_session * session, void * graph) {
    typedef int (*compute)(void *, void *);
    return TINY(compute, "ggml_backend_sched_graph_compute")(session->scheduler, graph);
}

// Computes `graphs` graphs of ten additions.
static inline void tiny_compute(struct tiny_session * session, int graphs) {
    for (int i = 0; i < graphs; i++) {
        if (tiny_run(session, tiny_build(session, 10, NULL)) != 0) {
            exit(92);
        }
    }
}

#ifdef __cplusplus
}
#endif
#endif
