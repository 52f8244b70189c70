// Both ends of ggml's RPC, linked against ggml: `serve ENDPOINT` computes what it is told to, and
// `ask ENDPOINT GRAPHS` leaves so many graphs to it, the first one a longer one, as a prompt is.

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-rpc.h"
#include "ggml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 64, PROMPT = 16 };

static void serve(const char * endpoint) {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_rpc_start_server(endpoint, NULL, 1, 1, &device);
}

static struct ggml_context * context(void) {
    struct ggml_init_params parameters = {1 << 20, NULL, true};
    return ggml_init(parameters);
}

// Computes one graph on the server that has the weights, and checks its first result.
static int ask_once(ggml_backend_sched_t scheduler, struct ggml_tensor * weights, int columns) {
    struct ggml_context * graph_context = context();
    struct ggml_tensor * input = ggml_new_tensor_2d(graph_context, GGML_TYPE_F32, WIDTH, columns);
    ggml_set_name(input, "input");
    ggml_set_input(input);
    struct ggml_tensor * product = ggml_mul_mat(graph_context, weights, input);
    ggml_set_name(product, "product");
    struct ggml_tensor * result = ggml_add(graph_context, product, product);
    ggml_set_name(result, "result");
    ggml_set_output(result);
    struct ggml_cgraph * graph = ggml_new_graph(graph_context);
    ggml_build_forward_expand(graph, result);
    ggml_backend_sched_reset(scheduler);
    if (!ggml_backend_sched_alloc_graph(scheduler, graph)) {
        return 1;
    }
    float ones[WIDTH * PROMPT];
    for (int i = 0; i < WIDTH * PROMPT; i++) {
        ones[i] = 1.0f;
    }
    ggml_backend_tensor_set(input, ones, 0, ggml_nbytes(input));
    if (ggml_backend_sched_graph_compute(scheduler, graph) != GGML_STATUS_SUCCESS) {
        return 1;
    }
    float first = 0;
    ggml_backend_tensor_get(result, &first, 0, sizeof first);
    ggml_free(graph_context);
    return first == 2.0f * WIDTH ? 0 : 1;
}

static int ask(const char * endpoint, int graphs) {
    ggml_backend_t backends[2] = {ggml_backend_rpc_init(endpoint, 0), ggml_backend_cpu_init()};
    if (!backends[0]) {
        return 2;
    }
    struct ggml_context * of_weights = context();
    struct ggml_tensor * weights = ggml_new_tensor_2d(of_weights, GGML_TYPE_F32, WIDTH, WIDTH);
    ggml_set_name(weights, "weights");
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(of_weights, backends[0]);
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    float ones[WIDTH * WIDTH];
    for (int i = 0; i < WIDTH * WIDTH; i++) {
        ones[i] = 1.0f;
    }
    ggml_backend_tensor_set(weights, ones, 0, sizeof ones);
    ggml_backend_sched_t scheduler = ggml_backend_sched_new(backends, NULL, 2, 64, false, true);
    int failed = 0;
    for (int i = 0; i < graphs && !failed; i++) {
        failed = ask_once(scheduler, weights, i == 0 ? PROMPT : 1);
    }
    ggml_backend_sched_free(scheduler);
    ggml_backend_buffer_free(buffer);
    ggml_free(of_weights);
    ggml_backend_free(backends[1]);
    ggml_backend_free(backends[0]);
    return failed;
}

int main(int count, char ** arguments) {
    if (count > 2 && strcmp(arguments[1], "serve") == 0) {
        serve(arguments[2]);
        return 0;
    }
    return count > 3 ? ask(arguments[2], atoi(arguments[3])) : 2;
}
