// An operation of the program's own computes another graph, on a backend of its own, in the middle of
// the graph that it belongs to.
#include "tiny_ggml.h"

static struct tiny_session inner;

static void compute_inner(void * to, const void * from, int thread, int threads, void * unused) {
    (void) to, (void) from, (void) threads, (void) unused;
    if (thread == 0) {
        tiny_compute(&inner, 2);
    }
}

static void * custom(void * context, void * tensor) {
    typedef void (*operation)(void *, const void *, int, int, void *);
    typedef void * (*map)(void *, void *, operation, int, void *);
    typedef void * (*binary)(void *, void *, void *);
    tensor = TINY(map, "ggml_map_custom1")(context, tensor, compute_inner, 1, NULL);
    return TINY(binary, "ggml_add")(context, tensor, tensor);
}

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session outer = tiny_start(atoi(argv[2]));
    inner = tiny_start(1);
    for (int i = 0; i < 3; i++) {
        if (tiny_run(&outer, tiny_build(&outer, 10, custom)) != 0) {
            return 1;
        }
    }
    tiny_compute(&inner, 1);
    return 0;
}
