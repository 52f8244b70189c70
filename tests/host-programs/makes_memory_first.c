// Makes memory before it computes, as programs do that load a model, and says when child processes were
// made in its name: by the page faults of those that have ended.
#include "tiny_ggml.h"
#include <sys/resource.h>

typedef void * (*make_function)(void *, size_t);
typedef void * (*type_function)(void);

static long faults_of_children(void) {
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    return used.ru_minflt;
}

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    make_function make = TINY(make_function, "ggml_backend_buft_alloc_buffer");
    type_function type = TINY(type_function, "ggml_backend_cpu_buffer_type");
    make(type(), 1 << 20);
    long making = faults_of_children();
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 1);
    long computing = faults_of_children() - making;
    printf("children while making memory: %s\n", making > 0 ? "some" : "none");
    printf("children while computing: %s\n", computing > 0 ? "some" : "none");
    return 0;
}
