// Has ggml linked into itself and computes a few graphs on its CPU backend. Prints what it
// computed and how many nodes that took. Arguments: graphs, threads, and the directory of
// another ggml, to be opened as a plugin's would be and used besides.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tiny_ggml.h"

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"

// What is linked in may have backends for devices as well, whose loader need not be there.
extern void vkDestroyInstance(void *, const void *) __attribute__((weak));

enum { WIDTH = 64, ROWS = 8, LAYERS = 3 };

static struct ggml_tensor * layer(struct ggml_context * context, struct ggml_tensor * weights,
                                  struct ggml_tensor * scale, struct ggml_tensor * input) {
    struct ggml_tensor * normed = ggml_mul(context, ggml_rms_norm(context, input, 1e-5f), scale);
    struct ggml_tensor * product = ggml_mul_mat(context, weights, normed);
    struct ggml_tensor * turned = ggml_cont(context, ggml_transpose(context, product));
    return ggml_add(context, input, ggml_cont(context, ggml_transpose(context, turned)));
}

static void fill(struct ggml_tensor * tensor, float value) {
    float * numbers = malloc(ggml_nbytes(tensor));
    for (int64_t i = 0; i < ggml_nelements(tensor); i++) {
        numbers[i] = value + (float) (i % 7) / 8;
    }
    ggml_backend_tensor_set(tensor, numbers, 0, ggml_nbytes(tensor));
    free(numbers);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int compare(const void * a, const void * b) {
    int64_t left = *(const int64_t *) a, right = *(const int64_t *) b;
    return (left > right) - (left < right);
}

int main(int argc, char ** argv) {
    int graphs = argc > 1 ? atoi(argv[1]) : 3;
    ggml_backend_t backend = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(backend, argc > 2 ? atoi(argv[2]) : 1);

    struct ggml_init_params params = { 1 << 20, NULL, true };
    struct ggml_context * context = ggml_init(params);
    struct ggml_tensor * weights = ggml_new_tensor_2d(context, GGML_TYPE_F32, WIDTH, WIDTH);
    struct ggml_tensor * scale = ggml_new_tensor_1d(context, GGML_TYPE_F32, WIDTH);
    struct ggml_tensor * input = ggml_new_tensor_2d(context, GGML_TYPE_F32, WIDTH, ROWS);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(context, backend);
    fill(weights, -0.25f);
    fill(scale, 0.5f);
    fill(input, 0.0f);

    struct ggml_tensor * output = input;
    for (int i = 0; i < LAYERS; i++) {
        output = layer(context, weights, scale, output);
    }
    struct ggml_cgraph * graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, output);
    ggml_backend_sched_t scheduler =
        ggml_backend_sched_new(&backend, NULL, 1, 1024, false, false);
    double sum = 0;
    int64_t * times = malloc(graphs * sizeof *times);
    for (int i = 0; i < graphs; i++) {
        int64_t start = now();
        ggml_backend_sched_reset(scheduler);
        if (!ggml_backend_sched_alloc_graph(scheduler, graph)
            || ggml_backend_sched_graph_compute(scheduler, graph) != GGML_STATUS_SUCCESS) {
            return 1;
        }
        times[i] = now() - start;
        float numbers[WIDTH * ROWS];
        ggml_backend_tensor_get(output, numbers, 0, sizeof numbers);
        for (int j = 0; j < WIDTH * ROWS; j++) {
            sum += numbers[j];
        }
    }
    qsort(times, graphs, sizeof *times, compare);
    fprintf(stderr, "median_ns=%lld\n", (long long) times[graphs / 2]);
    free(times);
    // Per layer: norm, two multiplications, two copies, an addition; views compute nothing.
    printf("sum=%.9g graphs=%d computed=%d\n", sum, graphs, 6 * LAYERS);
    if (argc > 3) {
        tiny_open(argv[3]);
        struct tiny_session session = tiny_start(1);
        tiny_compute(&session, 2);
    }
    ggml_backend_sched_free(scheduler);
    ggml_backend_buffer_free(buffer);
    ggml_free(context);
    ggml_backend_free(backend);
    if (vkDestroyInstance) {
        vkDestroyInstance(NULL, NULL);
    }
    return 0;
}
