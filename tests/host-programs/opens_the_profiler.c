// A program that links ggml and opens libggml-profiler when it runs, with threads and graphs
// behind it. argv[1]: ggml's libraries; argv[2]: libggml-profiler.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef void * object;
struct ggml_init_params {
    size_t mem_size;
    void * mem_buffer;
    bool   no_alloc;
};
object ggml_init(struct ggml_init_params);
void   ggml_free(object);
object ggml_new_tensor_2d(object, int, int64_t, int64_t);
void   ggml_set_input(object);
object ggml_add(object, object, object);
object ggml_new_graph(object);
void   ggml_build_forward_expand(object, object);
void   ggml_backend_load_all_from_path(const char *);
object ggml_backend_init_by_type(int, const char *);
object ggml_backend_sched_new(object *, object *, int, size_t, bool, bool);
void   ggml_backend_sched_free(object);
void   ggml_backend_sched_reset(object);
bool   ggml_backend_sched_alloc_graph(object, object);
int    ggml_backend_sched_graph_compute(object, object);

static object backend;
static atomic_bool done;

// Graphs of ten additions each.
static void compute(object sched, int graphs) {
    for (int i = 0; i < graphs; i++) {
        struct ggml_init_params params = { 1 << 20, NULL, true };
        object context = ggml_init(params);
        object tensor = ggml_new_tensor_2d(context, 0, 64, 3);
        ggml_set_input(tensor);
        for (int n = 0; n < 10; n++) tensor = ggml_add(context, tensor, tensor);
        object graph = ggml_new_graph(context);
        ggml_build_forward_expand(graph, tensor);
        ggml_backend_sched_reset(sched);
        if (!ggml_backend_sched_alloc_graph(sched, graph)) exit(2);
        if (ggml_backend_sched_graph_compute(sched, graph) != 0) exit(3);
        ggml_free(context);
    }
}

static void * change_environment(void * name) {
    for (int i = 0; !done; i++) {
        setenv(name, i % 2 ? "one" : "two", 1);
        if (!getenv(name)) exit(4);
        usleep(10);
    }
    return NULL;
}

extern char ** environ;

int main(int argc, char ** argv) {
    alarm(60);
    setenv("OWN", "one", 1);
    char ** place = environ;
    pthread_t thread;
    pthread_create(&thread, NULL, change_environment, "OWN");
    ggml_backend_load_all_from_path(argv[1]);
    backend = ggml_backend_init_by_type(0, NULL);
    object before = ggml_backend_sched_new(&backend, NULL, 1, 256, false, true);
    compute(before, 2);

    void * profiler = dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL);
    if (!profiler) {
        fprintf(stderr, "%s\n", dlerror());
        return 5;
    }
    int (*set)(object, bool) = dlsym(profiler, "ggml_backend_sched_set_profiling");
    int (*records)(object, const void **) = dlsym(profiler, "ggml_backend_sched_get_profiling_records");
    const char * (*last_error)(void) = dlsym(profiler, "ggml_profiler_last_error");
    object behind = ggml_backend_sched_new(&backend, NULL, 1, 256, false, true);
    compute(behind, 1);
    object scheds[] = { before, behind };
    for (int i = 0; i < 2; i++) {
        const void * found;
        if (set(scheds[i], true) != 0) printf("%s\n", last_error());
        compute(scheds[i], 3);
        printf("records=%d\n", records(scheds[i], &found));
        ggml_backend_sched_free(scheds[i]);
    }
    // It stays, whoever closes it.
    dlclose(profiler);
    object last = ggml_backend_sched_new(&backend, NULL, 1, 256, false, true);
    compute(last, 2);
    done = true;
    pthread_join(thread, NULL);
    printf("environment moved=%d\n", environ != place);
    return 0;
}
