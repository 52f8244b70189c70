// Has ggml linked into itself and computes the same graph again and again, until somebody writes to it or
// its input ends. Prints what came out, which is the same each time; ends with 2 when it was not. Argument:
// threads.
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"

enum { WIDTH = 64, ROWS = 8, LAYERS = 3 };

static int is_told(void) {
    struct pollfd input = { 0, POLLIN, 0 };
    return poll(&input, 1, 0) != 0;
}

static void fill(struct ggml_tensor * tensor) {
    static float numbers[WIDTH * WIDTH];
    for (int64_t i = 0; i < ggml_nelements(tensor); i++) {
        numbers[i] = (float) (i % 7) / 8 - 0.25f;
    }
    ggml_backend_tensor_set(tensor, numbers, 0, ggml_nbytes(tensor));
}

int main(int argc, char ** argv) {
    ggml_backend_t backend = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(backend, argc > 1 ? atoi(argv[1]) : 1);

    struct ggml_init_params params = { 1 << 20, NULL, true };
    struct ggml_context * context = ggml_init(params);
    struct ggml_tensor * weights = ggml_new_tensor_2d(context, GGML_TYPE_F32, WIDTH, WIDTH);
    struct ggml_tensor * input = ggml_new_tensor_2d(context, GGML_TYPE_F32, WIDTH, ROWS);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(context, backend);
    fill(weights);
    fill(input);

    struct ggml_tensor * output = input;
    for (int i = 0; i < LAYERS; i++) {
        struct ggml_tensor * normed = ggml_rms_norm(context, output, 1e-5f);
        output = ggml_add(context, output, ggml_mul_mat(context, weights, normed));
    }
    struct ggml_cgraph * graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, output);
    ggml_backend_sched_t scheduler = ggml_backend_sched_new(&backend, NULL, 1, 1024, false, false);

    static float first[WIDTH * ROWS], found[WIDTH * ROWS];
    long graphs = 0;
    do {
        ggml_backend_sched_reset(scheduler);
        if (!ggml_backend_sched_alloc_graph(scheduler, graph)
            || ggml_backend_sched_graph_compute(scheduler, graph) != GGML_STATUS_SUCCESS) {
            return 1;
        }
        ggml_backend_tensor_get(output, found, 0, sizeof found);
        if (graphs++ == 0) {
            memcpy(first, found, sizeof first);
        }
        if (memcmp(first, found, sizeof first) != 0) {
            return 2;
        }
    } while (!is_told());

    double sum = 0;
    for (int i = 0; i < WIDTH * ROWS; i++) {
        sum += found[i];
    }
    printf("sum=%.9g\n", sum);
    ggml_backend_sched_free(scheduler);
    ggml_backend_buffer_free(buffer);
    ggml_free(context);
    ggml_backend_free(backend);
    return 0;
}
