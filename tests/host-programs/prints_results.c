// Computes graphs with a scheduler and without, copies tensors in all ways there are, and prints
// what came out: nothing that differs from run to run. Uses nearly all of what the agent stands in
// for. argv[2]: threads; argv[3]: the name of a device to compute on besides the processor.
#include "tiny_ggml.h"
#include <unistd.h>

enum { SIZE = 64 };

static void * new_tensor(void * context) {
    typedef void * (*new_1d)(void *, int, int64_t);
    return TINY(new_1d, "ggml_new_tensor_1d")(context, 0, SIZE);
}

static void set(void * tensor, float first) {
    float numbers[SIZE];
    for (int i = 0; i < SIZE; i++) {
        numbers[i] = first + (float) i / SIZE;
    }
    typedef void (*setter)(void *, const void *, size_t, size_t);
    TINY(setter, "ggml_backend_tensor_set")(tensor, numbers, 0, sizeof numbers);
}

static void print(const char * what, void * tensor) {
    float numbers[SIZE], sum = 0;
    typedef void (*getter)(void *, void *, size_t, size_t);
    TINY(getter, "ggml_backend_tensor_get")(tensor, numbers, 0, sizeof numbers);
    for (int i = 0; i < SIZE; i++) {
        sum += numbers[i];
    }
    printf("%s: %.6g\n", what, sum);
}

static void copy(struct tiny_session * session) {
    struct tiny_init_params params = {1 << 16, NULL, true};
    void * context = TINY(void * (*)(struct tiny_init_params), "ggml_init")(params);
    void * from = new_tensor(context), * to = new_tensor(context);
    typedef void * (*allocate)(void *, void *);
    void * buffer = TINY(allocate, "ggml_backend_alloc_ctx_tensors")(context, session->backend);
    set(from, 7);
    set(to, 0);
    TINY(void (*)(void *, void *), "ggml_backend_tensor_copy")(from, to);
    print("copied", to);
    float half[SIZE / 2] = {1, 2, 3};
    typedef void (*set_async)(void *, void *, const void *, size_t, size_t);
    TINY(set_async, "ggml_backend_tensor_set_async")(session->backend, to, half, 0, sizeof half);
    typedef void (*get_async)(void *, const void *, void *, size_t, size_t);
    TINY(get_async, "ggml_backend_tensor_get_async")(session->backend, to, half, 0, sizeof half);
    TINY(void (*)(void *), "ggml_backend_synchronize")(session->backend);
    print("written in part", to);
    TINY(void (*)(void *), "ggml_backend_buffer_free")(buffer);
    TINY(void (*)(void *), "ggml_free")(context);
}

// A graph of `count` additions, computed with the session's scheduler.
static void compute(struct tiny_session * session, int count) {
    void * graph = tiny_build(session, count, NULL);
    typedef void * (*node)(void *, int);
    typedef void * (*tensor)(void *);
    void * first = TINY(tensor, "ggml_get_first_tensor")(session->context);
    set(first, (float) count);
    if (tiny_run(session, graph) != 0) {
        exit(92);
    }
    TINY(void (*)(void *), "ggml_backend_sched_synchronize")(session->scheduler);
    print("computed", TINY(node, "ggml_graph_node")(graph, -1));
}

// The same without a scheduler.
static void compute_alone(struct tiny_session * session) {
    struct tiny_init_params params = {1 << 20, NULL, true};
    void * context = TINY(void * (*)(struct tiny_init_params), "ggml_init")(params);
    void * input = new_tensor(context);
    typedef void * (*binary)(void *, void *, void *);
    void * sum = TINY(binary, "ggml_add")(context, input, input);
    void * product = TINY(binary, "ggml_mul")(context, sum, input);
    typedef void * (*new_graph)(void *, size_t, bool);
    void * graph = TINY(new_graph, "ggml_new_graph_custom")(context, 64, false);
    TINY(void (*)(void *, void *), "ggml_build_forward_expand")(graph, product);
    typedef void * (*allocate)(void *, void *);
    void * buffer = TINY(allocate, "ggml_backend_alloc_ctx_tensors")(context, session->backend);
    set(input, 3);
    typedef int (*run)(void *, void *);
    if (TINY(run, "ggml_backend_graph_compute")(session->backend, graph) != 0) {
        exit(92);
    }
    print("alone", product);
    TINY(void (*)(void *), "ggml_backend_buffer_free")(buffer);
    TINY(void (*)(void *), "ggml_free")(context);
}

// With a scheduler over the device, if there is one, and the processor.
static struct tiny_session start(int threads, const char * device, void ** processor) {
    struct tiny_session session = tiny_start(threads);
    *processor = session.backend;
    if (device) {
        typedef void * (*by_name)(const char *, const char *);
        session.backend = TINY(by_name, "ggml_backend_init_by_name")(device, NULL);
        TINY(void (*)(void *), "ggml_backend_sched_free")(session.scheduler);
        void * both[] = {session.backend, *processor};
        typedef void * (*sched_new)(void **, void *, int, size_t, bool, bool);
        session.scheduler =
            TINY(sched_new, "ggml_backend_sched_new")(both, NULL, 2, 256, false, true);
    }
    return session;
}

int main(int argc, char ** argv) {
    tiny_open(argv[1]);
    void (*free_backend)(void *) = TINY(void (*)(void *), "ggml_backend_free");
    // A backend of a kind that was freed is made again.
    for (int round = 0; round < 2; round++) {
        void * processor;
        struct tiny_session session = start(atoi(argv[2]), argv[3], &processor);
        compute(&session, 4);
        compute(&session, 9);
        compute(&session, 9);
        copy(&session);
        compute_alone(&session);
        compute_alone(&session);
        TINY(void (*)(void *), "ggml_free")(session.context);
        TINY(void (*)(void *), "ggml_backend_sched_free")(session.scheduler);
        free_backend(session.backend);
        if (argc > 3) {
            free_backend(processor);
        }
    }
    fflush(stdout);
    _exit(5);
}
