// A graph that is broken off before it comes to a fused pair, and then computed to its end.
#include "tiny_ggml.h"

static int left = 2;

static bool should_stop(void * data) {
    (void) data;
    return left > 0 && --left == 0;
}

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    tiny_stop_if(session.backend, should_stop, NULL);
    void * graph = tiny_build(&session, 5, tiny_norm_and_scale);
    int stopped = tiny_run(&session, graph);
    for (int i = 0; i < 3; i++) {
        if (tiny_run(&session, graph) != 0) {
            return 1;
        }
    }
    return stopped == 0 ? 2 : 0;
}
