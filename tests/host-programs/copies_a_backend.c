// A wrapper that takes a backend's struct over as its own, function table included.
#include "tiny_ggml.h"
#include <malloc.h>

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    size_t bytes = malloc_usable_size(session.backend);
    void * copy = malloc(bytes);
    memcpy(copy, session.backend, bytes);
    typedef int (*compute)(void *, void *);
    for (int i = 0; i < 3; i++) {
        int status = TINY(compute, "ggml_backend_graph_compute")(copy, tiny_build(&session, 4, NULL));
        if (status != 0) {
            return 10 + i;
        }
    }
    return 0;
}
