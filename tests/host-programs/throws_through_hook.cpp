// A C++ exception leaves a backend's graph_compute, passes through the agent's
// hooks, and is caught by the program; then ggml is used again.
#include "tiny_ggml.h"
#include <stdexcept>

static bool should_throw = true;

static void thrower(void *, const void *, int, int, void *) {
    if (should_throw) {
        throw std::runtime_error("device lost");
    }
}

static void * add_thrower(void * context, void * tensor) {
    typedef void (*op)(void *, const void *, int, int, void *);
    typedef void * (*map_custom)(void *, void *, op, int, void *);
    return TINY(map_custom, "ggml_map_custom1")(context, tensor, thrower, 1, nullptr);
}

int main(int, char ** argv) {
    tiny_open(argv[1]);
    tiny_session session = tiny_start(1);
    tiny_compute(&session, 1);
    int caught = 0;
    for (int i = 0; i < 3; i++) {
        try {
            tiny_run(&session, tiny_build(&session, 4, add_thrower));
        } catch (const std::runtime_error & error) {
            caught += strcmp(error.what(), "device lost") == 0;
        }
    }
    should_throw = false;
    if (tiny_run(&session, tiny_build(&session, 4, add_thrower)) != 0) {
        return 2;
    }
    return caught == 3 ? 0 : 1;
}
