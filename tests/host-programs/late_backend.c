// A backend of its own that only starts work when it is asked to compute: the results are there
// when it was waited for. One graph fails, one has no nodes. ggml is linked in.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"

enum { LENGTH = 16, MOST_NODES = 8 };

static struct {
    pthread_t worker;
    bool working;
    bool fail;
    struct ggml_tensor * nodes[MOST_NODES];
    int n_nodes;
} late;

static void * work(void * unused) {
    (void) unused;
    usleep(2000);
    for (int i = 0; i < late.n_nodes; i++) {
        float factor;
        memcpy(&factor, late.nodes[i]->op_params, sizeof factor);
        const float * from = late.nodes[i]->src[0]->data;
        float * to = late.nodes[i]->data;
        for (int j = 0; j < LENGTH; j++) {
            to[j] = from[j] * factor;
        }
    }
    return NULL;
}

static void late_synchronize(ggml_backend_t backend) {
    (void) backend;
    if (late.working) {
        pthread_join(late.worker, NULL);
        late.working = false;
    }
}

static enum ggml_status late_compute(ggml_backend_t backend, struct ggml_cgraph * graph) {
    late_synchronize(backend);
    if (late.fail) {
        return GGML_STATUS_FAILED;
    }
    late.n_nodes = ggml_graph_n_nodes(graph);
    for (int i = 0; i < late.n_nodes; i++) {
        late.nodes[i] = ggml_graph_node(graph, i);
    }
    late.working = true;
    pthread_create(&late.worker, NULL, work, NULL);
    return GGML_STATUS_SUCCESS;
}

static const char * late_name(ggml_backend_t backend) {
    (void) backend;
    return "Late";
}

static void late_free(ggml_backend_t backend) {
    late_synchronize(backend);
}

static const char * device_name(ggml_backend_dev_t device) {
    (void) device;
    return "Late";
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    (void) device;
    return GGML_BACKEND_DEVICE_TYPE_GPU;
}

static ggml_backend_buffer_type_t device_memory(ggml_backend_dev_t device) {
    (void) device;
    return ggml_backend_cpu_buffer_type();
}

static bool device_can(ggml_backend_dev_t device, const struct ggml_tensor * op) {
    (void) device;
    return op->op == GGML_OP_SCALE || op->op == GGML_OP_NONE;
}

static bool device_reads(ggml_backend_dev_t device, ggml_backend_buffer_type_t memory) {
    (void) device;
    return ggml_backend_buft_is_host(memory);
}

static struct ggml_backend_device device = {
    .iface = { .get_name = device_name, .get_description = device_name, .get_type = device_type,
               .get_buffer_type = device_memory, .supports_op = device_can,
               .supports_buft = device_reads },
};

static struct ggml_backend backend = {
    .iface = { .get_name = late_name, .free = late_free, .synchronize = late_synchronize,
               .graph_compute = late_compute },
    .device = &device,
};

int main(void) {
    ggml_backend_t backends[] = { &backend, ggml_backend_cpu_init() };
    ggml_backend_cpu_set_n_threads(backends[1], 1);
    ggml_backend_sched_t scheduler =
        ggml_backend_sched_new(backends, NULL, 2, 256, false, false);
    struct ggml_init_params params = { 1 << 20, NULL, true };
    struct ggml_context * context = ggml_init(params);
    struct ggml_tensor * input = ggml_new_tensor_1d(context, GGML_TYPE_F32, LENGTH);
    ggml_set_input(input);
    struct ggml_tensor * output = input;
    for (int i = 0; i < 3; i++) {
        output = ggml_scale(context, output, 1.5f);
    }
    ggml_set_output(output);
    struct ggml_cgraph * graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, output);
    for (int round = 0; round < 3; round++) {
        late.fail = round == 2;
        ggml_backend_sched_reset(scheduler);
        ggml_backend_sched_alloc_graph(scheduler, graph);
        float numbers[LENGTH] = { 1.0f, 2.0f, 3.0f };
        ggml_backend_tensor_set(input, numbers, 0, sizeof numbers);
        int status = ggml_backend_sched_graph_compute(scheduler, graph);
        ggml_backend_tensor_get(output, numbers, 0, sizeof numbers);
        printf("status=%d", status);
        printf(status == 0 ? " result=%g\n" : "\n", numbers[2]);
    }
    late.fail = false;
    struct ggml_cgraph * nothing = ggml_new_graph(context);
    printf("nothing: status=%d\n", ggml_backend_graph_compute(&backend, nothing));
    ggml_backend_sched_free(scheduler);
    return 0;
}
