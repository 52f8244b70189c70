// Makes buffers, and frees some of them while nothing is recorded: see the sizes below.
#include "tiny_ggml.h"
#include <signal.h>

typedef void * (*make_function)(void *, size_t);
typedef void * (*type_function)(void);
typedef void (*free_function)(void *);
typedef void (*usage_function)(void *, int);

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    make_function make = TINY(make_function, "ggml_backend_buft_alloc_buffer");
    type_function type = TINY(type_function, "ggml_backend_cpu_buffer_type");
    free_function give_back = TINY(free_function, "ggml_backend_buffer_free");
    usage_function use = TINY(usage_function, "ggml_backend_buffer_set_usage");
    // Before anything is recorded; one of them is gone again by then.
    void * kept = make(type(), 1000 << 10);
    use(kept, 1);
    give_back(make(type(), 1001 << 10));
    struct tiny_session session = tiny_start(1);
    void * freed_while_stopped = make(type(), 1002 << 10);
    tiny_compute(&session, 1);
    raise(SIGUSR2);
    give_back(freed_while_stopped);
    give_back(make(type(), 1003 << 10));
    void * made_while_stopped = make(type(), 1004 << 10);
    raise(SIGUSR2);
    tiny_compute(&session, 1);
    give_back(made_while_stopped);
    return 0;
}
