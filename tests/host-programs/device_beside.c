// Computes with the processor although its scheduler has a device, which supports nothing. argv[2]:
// threads; argv[3]: `answers`, or `crashes` where the device cannot be asked about a node that has
// memory already, as ggml never does, or `remote` where it is one of ggml's RPC: then it prints how often
// it was asked so, in this process or in another that has its memory. Prints what came out.
#include "fake_device.h"
#include <sys/mman.h>

enum { WIDTH = 8, EXPERTS = 4, TOKENS = 3, USED = 2, SUPPORTS_OP = 9 };

static bool crashes;
static int * asked;
static void * (*data_of)(const void *);
static const char * (*op_of)(const void *);

static bool supports_op(void * device, const void * node) {
    (void) device;
    // It asks about weights, which have memory.
    if (data_of(node) && strcmp(op_of(node), "NONE") != 0) {
        __atomic_fetch_add(asked, 1, __ATOMIC_RELAXED);
        if (crashes) {
            abort();
        }
    }
    return false;
}

static const char * rpc(void * registry) {
    (void) registry;
    return "RPC";
}

// Behind the functions of a device is its registry, whose second word is the function for its name.
static void make_remote(void ** device) {
    enum { REGISTRY = 15 };
    void ** registry = calloc(WORDS, sizeof *registry);
    memcpy(registry, device[REGISTRY], 6 * sizeof *registry);
    registry[1] = (void *) rpc;
    device[REGISTRY] = registry;
}

// Nothing comes here.
static int compute_there(void * backend, void * graph) {
    (void) backend;
    (void) graph;
    return -1;
}

static void set(void * tensor, const void * data, size_t bytes) {
    typedef void (*setter)(void *, const void *, size_t, size_t);
    TINY(setter, "ggml_backend_tensor_set")(tensor, data, 0, bytes);
}

static void * new_context(void) {
    struct tiny_init_params params = {1 << 20, NULL, true};
    return TINY(void * (*)(struct tiny_init_params), "ggml_init")(params);
}

typedef void * (*new_3d)(void *, int, int64_t, int64_t, int64_t);

static void * weights(void * backend) {
    void * context = new_context();
    void * experts = TINY(new_3d, "ggml_new_tensor_3d")(context, 0, WIDTH, WIDTH, EXPERTS);
    typedef void * (*allocate)(void *, void *);
    void * buffer = TINY(allocate, "ggml_backend_alloc_ctx_tensors")(context, backend);
    TINY(void (*)(void *, int), "ggml_backend_buffer_set_usage")(buffer, 1);
    float numbers[WIDTH * WIDTH * EXPERTS];
    for (int i = 0; i < WIDTH * WIDTH * EXPERTS; i++) {
        numbers[i] = (float) (i % 7);
    }
    set(experts, numbers, sizeof numbers);
    return experts;
}

// The same choice in every graph: expert 3 for all tokens, and one other each.
static void compute(void * scheduler, void * experts) {
    void * context = new_context();
    void * input = TINY(new_3d, "ggml_new_tensor_3d")(context, 0, WIDTH, 1, TOKENS);
    typedef void * (*new_2d)(void *, int, int64_t, int64_t);
    void * choice = TINY(new_2d, "ggml_new_tensor_2d")(context, 26, USED, TOKENS);
    TINY(void (*)(void *), "ggml_set_input")(input);
    TINY(void (*)(void *), "ggml_set_input")(choice);
    typedef void * (*three)(void *, void *, void *, void *);
    void * product = TINY(three, "ggml_mul_mat_id")(context, experts, input, choice);
    void * last = TINY(one, "ggml_sqr")(context, product);
    TINY(void (*)(void *), "ggml_set_output")(last);
    typedef void * (*new_graph)(void *, size_t, bool);
    void * graph = TINY(new_graph, "ggml_new_graph_custom")(context, 64, false);
    TINY(void (*)(void *, void *), "ggml_build_forward_expand")(graph, last);
    TINY(void (*)(void *), "ggml_backend_sched_reset")(scheduler);
    if (!TINY(bool (*)(void *, void *), "ggml_backend_sched_alloc_graph")(scheduler, graph)) {
        exit(93);
    }
    float numbers[WIDTH * TOKENS], results[WIDTH * USED * TOKENS], sum = 0;
    for (int i = 0; i < WIDTH * TOKENS; i++) {
        numbers[i] = (float) (i % 5);
    }
    int32_t chosen[USED * TOKENS] = {3, 0, 3, 1, 3, 0};
    set(input, numbers, sizeof numbers);
    set(choice, chosen, sizeof chosen);
    typedef int (*run)(void *, void *);
    if (TINY(run, "ggml_backend_sched_graph_compute")(scheduler, graph) != 0) {
        exit(92);
    }
    typedef void (*getter)(void *, void *, size_t, size_t);
    TINY(getter, "ggml_backend_tensor_get")(last, results, 0, sizeof results);
    for (int i = 0; i < WIDTH * USED * TOKENS; i++) {
        sum += results[i];
    }
    printf("%.6g\n", sum);
    TINY(void (*)(void *), "ggml_free")(context);
}

int main(int count, char ** words) {
    tiny_open(words[1]);
    asked = mmap(NULL, sizeof *asked, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    crashes = count > 3 && strcmp(words[3], "crashes") == 0;
    op_of = TINY(const char * (*)(const void *), "ggml_op_desc");
    data_of = TINY(void * (*)(const void *), "ggml_get_data");
    struct tiny_session session = tiny_start(atoi(words[2]));
    void ** device = backend_like(session.backend, (void *) compute_there, nothing);
    ((void **) device[17])[SUPPORTS_OP] = (void *) supports_op;
    bool is_remote = count > 3 && strcmp(words[3], "remote") == 0;
    if (is_remote) {
        make_remote(device[17]);
    }
    void * both[] = {device, session.backend};
    typedef void * (*sched_new)(void **, void *, int, size_t, bool, bool);
    void * scheduler = TINY(sched_new, "ggml_backend_sched_new")(both, NULL, 2, 256, false, true);
    void * experts = weights(session.backend);
    for (int i = 0; i < 3; i++) {
        compute(scheduler, experts);
    }
    if (is_remote) {
        printf("asked=%d\n", *asked);
    }
    return 0;
}
