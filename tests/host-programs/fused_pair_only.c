// A graph that is one fused pair, computed again and again: the last node of one
// run is the first of the next.
#include "tiny_ggml.h"

static void * norm_and_scale(void * context, void * tensor) {
    void * norm = TINY(void * (*)(void *, void *, float), "ggml_rms_norm")(context, tensor, 1e-5f);
    return TINY(void * (*)(void *, void *, void *), "ggml_mul")(context, norm, tensor);
}

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    void * graph = tiny_build(&session, 0, norm_and_scale);
    for (int i = 0; i < 5; i++) {
        if (tiny_run(&session, graph) != 0) {
            return 1;
        }
    }
    return 0;
}
