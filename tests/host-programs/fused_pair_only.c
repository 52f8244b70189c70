// A graph that is one fused pair, computed again and again: the last node of one
// run is the first of the next.
#include "tiny_ggml.h"

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    void * graph = tiny_build(&session, 0, tiny_norm_and_scale);
    for (int i = 0; i < 5; i++) {
        if (tiny_run(&session, graph) != 0) {
            return 1;
        }
    }
    return 0;
}
