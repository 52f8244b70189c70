// Frees a backend of the fake device of `fake-cuda` while as many threads compute as the agent
// can follow, so that it cannot write that down; then computes on another one until the tracing
// library is let go, before which everybody waits for the devices. argv[2]: the folder of the
// device's libraries, argv[3]: threads. Ends with 94 if anybody waits for the one that is gone.
#include "fake_device.h"
#include <pthread.h>
#include <unistd.h>

static pthread_barrier_t all_in, may_leave;
static void * gone;

static void synchronize(void * backend) {
    if (backend == gone) {
        _exit(94);
    }
}

static void hold(void * target, const void * source, int thread, int threads, void * data) {
    (void) target, (void) source, (void) thread, (void) threads, (void) data;
    pthread_barrier_wait(&all_in);
    pthread_barrier_wait(&may_leave);
}

// A graph of one op, which waits.
static void * compute_and_hold(void * unused) {
    struct tiny_session session = tiny_start(1);
    struct tiny_init_params params = {1 << 16, NULL, true};
    void * context = TINY(void * (*)(struct tiny_init_params), "ggml_init")(params);
    void * input = TINY(void * (*)(void *, int, int64_t), "ggml_new_tensor_1d")(context, 0, 64);
    typedef void (*custom)(void *, const void *, int, int, void *);
    typedef void * (*map)(void *, void *, custom, int, void *);
    void * held = TINY(map, "ggml_map_custom1")(context, input, hold, 1, NULL);
    typedef void * (*new_graph)(void *, size_t, bool);
    void * graph = TINY(new_graph, "ggml_new_graph_custom")(context, 64, false);
    TINY(void (*)(void *, void *), "ggml_build_forward_expand")(graph, held);
    typedef void * (*allocate)(void *, void *);
    TINY(allocate, "ggml_backend_alloc_ctx_tensors")(context, session.backend);
    TINY(int (*)(void *, void *), "ggml_backend_graph_compute")(session.backend, graph);
    return unused;
}

int main(int count, char ** words) {
    (void) count;
    tiny_open(words[1]);
    struct tiny_session session = tiny_start(1);
    open_in(words[2], "libcuda.so.1");
    void * compute = dlsym(open_in(words[2], "libggml-fake.so"), "fake_graph_compute");
    void * graph = build(&session);
    int (*graph_compute)(void *, void *) =
        TINY(int (*)(void *, void *), "ggml_backend_graph_compute");
    void * first = backend_like(session.backend, compute, synchronize);
    void * second = backend_like(session.backend, compute, synchronize);
    graph_compute(first, graph);

    int threads = atoi(words[3]);
    pthread_barrier_init(&all_in, NULL, (unsigned) threads + 1);
    pthread_barrier_init(&may_leave, NULL, (unsigned) threads + 1);
    pthread_t others[256];
    for (int i = 0; i < threads; i++) {
        pthread_create(&others[i], NULL, compute_and_hold, NULL);
    }
    pthread_barrier_wait(&all_in);
    TINY(void (*)(void *), "ggml_backend_free")(first);
    gone = first;
    pthread_barrier_wait(&may_leave);
    for (int i = 0; i < threads; i++) {
        pthread_join(others[i], NULL);
    }
    for (int i = 0; i < 100; i++) {
        if (graph_compute(second, graph) != 0) {
            return 92;
        }
    }
    return 0;
}
