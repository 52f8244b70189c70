// A library that another tool preloads: it stands in for the same functions as the
// agent, and passes each call on to the next library that has it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

static int seen;

static void * next(const char * name) {
    return dlsym(RTLD_NEXT, name);
}

void * ggml_backend_sched_new(void ** backends, void * types, int count, size_t size,
                              bool parallel, bool offload) {
    typedef void * (*sched_new)(void **, void *, int, size_t, bool, bool);
    return ((sched_new) next("ggml_backend_sched_new"))(backends, types, count, size, parallel,
                                                        offload);
}

int ggml_backend_sched_graph_compute(void * scheduler, void * graph) {
    seen++;
    return ((int (*)(void *, void *)) next("ggml_backend_sched_graph_compute"))(scheduler, graph);
}

void ggml_backend_sched_free(void * scheduler) {
    ((void (*)(void *)) next("ggml_backend_sched_free"))(scheduler);
}

// Programs that compute nothing may be started any number of times.
__attribute__((destructor)) static void report(void) {
    if (seen > 0) printf("the other profiler saw %d\n", seen);
}
