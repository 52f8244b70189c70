// Computes ops of its own, each for as many rounds as its result has elements; those of one shape for
// longer. Arguments: the libraries, graphs, permille longer for the shape of 300 elements.
#include "tiny_ggml.h"

#define LAYERS 4
#define LONGER_SHAPE 300

// Of shapes with as many elements. More of them than there are wanted: each is a row of a comparison.
static const int64_t shapes[] = {100, 200, LONGER_SHAPE, 400, 500, 600};

// Shapes are told to the op beside its sources, so that this needs no layout of ggml's.
struct wanted {
    int64_t elements;
    long permille;
};

static volatile uint64_t sink;

static void compute(void * result, const void * source, int thread, int threads, void * data) {
    (void) result, (void) source, (void) threads;
    if (thread != 0) {
        return;
    }
    const struct wanted * wanted = data;
    uint64_t rounds = (uint64_t) wanted->elements * 150 * (1000 + wanted->permille) / 1000;
    uint64_t value = 1;
    for (uint64_t i = 0; i < rounds; i++) {
        value = value * 6364136223846793005u + i;
    }
    sink = value;
}

int main(int argc, char ** argv) {
    if (argc < 4) {
        return 2;
    }
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    typedef void * (*new_tensor)(void *, int, int64_t);
    typedef void (*kernel)(void *, const void *, int, int, void *);
    typedef void * (*map)(void *, void *, kernel, int, void *);
    typedef void * (*new_graph)(void *, size_t, bool);
    enum { count = sizeof shapes / sizeof *shapes };
    static struct wanted wanted[count];
    struct tiny_init_params params = {1 << 20, NULL, true};
    session.context = TINY(void * (*)(struct tiny_init_params), "ggml_init")(params);
    void * graph = TINY(new_graph, "ggml_new_graph_custom")(session.context, 256, false);
    for (int at = 0; at < count; at++) {
        long permille = shapes[at] == LONGER_SHAPE ? atol(argv[3]) : 0;
        wanted[at] = (struct wanted) {shapes[at], permille};
        void * tensor = TINY(new_tensor, "ggml_new_tensor_1d")(session.context, 0, shapes[at]);
        TINY(void (*)(void *), "ggml_set_input")(tensor);
        for (int layer = 0; layer < LAYERS; layer++) {
            tensor = TINY(map, "ggml_map_custom1")(session.context, tensor, compute, 1, &wanted[at]);
        }
        TINY(void (*)(void *, void *), "ggml_build_forward_expand")(graph, tensor);
    }
    TINY(bool (*)(void *, void *), "ggml_backend_sched_alloc_graph")(session.scheduler, graph);
    for (int i = 0; i < atoi(argv[2]); i++) {
        if (tiny_run(&session, graph) != 0) {
            return 92;
        }
    }
    return 0;
}
