// Computes a few graphs on a backend of its own, an accelerator of the host: it works in the host's memory, and
// has finished when its function returns. It trusts the fields of the graphs that it gets, as every backend
// does. Prints what it computed. Argument: graphs.
#include <stdio.h>
#include <stdlib.h>

#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-cpu.h"
#include "ggml-impl.h"

enum { WIDTH = 64, SUMS = 18 };

static const char * name(ggml_backend_t backend) {
    (void) backend;
    return "SUMS";
}

static const char * name_of_device(ggml_backend_dev_t device) {
    (void) device;
    return "SUMS";
}

static enum ggml_backend_dev_type type_of_device(ggml_backend_dev_t device) {
    (void) device;
    return GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

static ggml_backend_buffer_type_t buffers_of_device(ggml_backend_dev_t device) {
    (void) device;
    return ggml_backend_cpu_buffer_type();
}

static void forget(ggml_backend_t backend) { (void) backend; }

static enum ggml_status compute(ggml_backend_t backend, struct ggml_cgraph * graph) {
    (void) backend;
    for (int i = 0; i < graph->n_nodes; i++) {
        struct ggml_tensor * node = graph->nodes[i];
        const float * left = node->src[0]->data, * right = node->src[1]->data;
        for (int j = 0; j < WIDTH; j++) {
            ((float *) node->data)[j] = left[j] + right[j];
        }
    }
    return GGML_STATUS_SUCCESS;
}

int main(int argc, char ** argv) {
    int graphs = argc > 1 ? atoi(argv[1]) : 3;
    struct ggml_backend_device device = {
        .iface = { .get_name = name_of_device, .get_description = name_of_device,
                   .get_type = type_of_device, .get_buffer_type = buffers_of_device },
    };
    struct ggml_backend backend = {
        .iface = { .get_name = name, .free = forget, .graph_compute = compute },
        .device = &device,
    };
    struct ggml_init_params params = { 1 << 20, NULL, true };
    struct ggml_context * context = ggml_init(params);
    struct ggml_tensor * first = ggml_new_tensor_1d(context, GGML_TYPE_F32, WIDTH);
    struct ggml_tensor * sum = first;
    for (int i = 0; i < SUMS; i++) {
        sum = ggml_add(context, sum, first);
    }
    struct ggml_cgraph * graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, sum);
    ggml_backend_alloc_ctx_tensors_from_buft(context, ggml_backend_cpu_buffer_type());
    for (int j = 0; j < WIDTH; j++) {
        ((float *) first->data)[j] = (float) j;
    }
    for (int i = 0; i < graphs; i++) {
        if (ggml_backend_graph_compute(&backend, graph) != GGML_STATUS_SUCCESS) {
            return 1;
        }
        printf("%g\n", ((float *) sum->data)[WIDTH - 1]);
        ((float *) first->data)[WIDTH - 1] = (float) i;
    }
    ggml_backend_free(&backend);
    return 0;
}
