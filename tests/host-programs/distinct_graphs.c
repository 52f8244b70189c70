// A server whose prompts are never of the same length: every graph is another one. Says how
// much memory the process has, early and at the end.
#include "tiny_ggml.h"

static long resident_kib(void) {
    FILE * status = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;
    while (status && fgets(line, sizeof line, status)) {
        sscanf(line, "VmRSS: %ld", &kib);
    }
    if (status) {
        fclose(status);
    }
    return kib;
}

static void * graph_of_length(struct tiny_session * session, int64_t length) {
    if (session->context) {
        TINY(void (*)(void *), "ggml_free")(session->context);
    }
    struct tiny_init_params params = {1 << 20, NULL, true};
    session->context = TINY(void * (*)(struct tiny_init_params), "ggml_init")(params);
    void * tensor = TINY(void * (*)(void *, int, int64_t), "ggml_new_tensor_1d")(session->context, 0, length);
    TINY(void (*)(void *), "ggml_set_input")(tensor);
    typedef void * (*binary)(void *, void *, void *);
    for (int i = 0; i < 10; i++) {
        tensor = TINY(binary, "ggml_add")(session->context, tensor, tensor);
    }
    typedef void * (*new_graph)(void *, size_t, bool);
    void * graph = TINY(new_graph, "ggml_new_graph_custom")(session->context, 256, false);
    TINY(void (*)(void *, void *), "ggml_build_forward_expand")(graph, tensor);
    TINY(void (*)(void *), "ggml_backend_sched_reset")(session->scheduler);
    TINY(bool (*)(void *, void *), "ggml_backend_sched_alloc_graph")(session->scheduler, graph);
    return graph;
}

int main(int argc, char ** argv) {
    int graphs = argc > 2 ? atoi(argv[2]) : 1000;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    long early = 0;
    for (int i = 1; i <= graphs; i++) {
        if (tiny_run(&session, graph_of_length(&session, i)) != 0) {
            return 92;
        }
        if (i == graphs / 4) {
            early = resident_kib();
        }
    }
    printf("early=%ld end=%ld\n", early, resident_kib());
    return 0;
}
