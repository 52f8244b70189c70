// A library that another tool preloads: it stands in for the same functions as the
// agent, and passes each call on to the next library that has it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static int seen;

static void * next(const char * name) {
    return dlsym(RTLD_NEXT, name);
}

int ggml_backend_sched_graph_compute(void * scheduler, void * graph) {
    seen++;
    return ((int (*)(void *, void *)) next("ggml_backend_sched_graph_compute"))(scheduler, graph);
}

void ggml_backend_sched_free(void * scheduler) {
    ((void (*)(void *)) next("ggml_backend_sched_free"))(scheduler);
}

__attribute__((destructor)) static void report(void) {
    printf("the other profiler saw %d\n", seen);
}
