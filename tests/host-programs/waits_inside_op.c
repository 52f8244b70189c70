// Has ggml linked into it and computes six graphs of four ops on its CPU backend. The second op of the
// first and of the fourth graph says that it is ready and waits for a line, and so does the program
// before the fourth graph.
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"

enum { GRAPHS = 6 };

static int graph_number;

static void wait_for_a_line(void) {
    char line;
    puts("ready");
    fflush(stdout);
    struct pollfd input = { 0, POLLIN, 0 };
    while (poll(&input, 1, -1) == 1 && read(0, &line, 1) == 1 && line != '\n') {
    }
}

static void waiting_op(struct ggml_tensor * to, const struct ggml_tensor * from, int thread,
                       int threads, void * unused) {
    (void) threads;
    (void) unused;
    if (thread != 0) {
        return;
    }
    ((float *) to->data)[0] = ((const float *) from->data)[0];
    if (graph_number % 3 == 0) {
        wait_for_a_line();
    }
}

int main(void) {
    ggml_backend_t backend = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(backend, 1);
    struct ggml_init_params params = { 1 << 20, NULL, true };
    struct ggml_context * context = ggml_init(params);
    struct ggml_tensor * input = ggml_new_tensor_1d(context, GGML_TYPE_F32, 1);
    struct ggml_tensor * output = ggml_sqr(context, input);
    output = ggml_map_custom1(context, output, waiting_op, 1, NULL);
    output = ggml_sqr(context, ggml_sqr(context, output));
    struct ggml_cgraph * graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, output);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(context, backend);
    float two = 2;
    ggml_backend_tensor_set(input, &two, 0, sizeof two);
    for (graph_number = 0; graph_number < GRAPHS; graph_number++) {
        if (graph_number == 3) {
            wait_for_a_line();
        }
        if (ggml_backend_graph_compute(backend, graph) != GGML_STATUS_SUCCESS) {
            return 1;
        }
    }
    ggml_backend_tensor_get(output, &two, 0, sizeof two);
    ggml_backend_buffer_free(buffer);
    ggml_free(context);
    ggml_backend_free(backend);
    return two == 256 ? 0 : 2;
}
