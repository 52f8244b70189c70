// A backend of ggml on the fake device. It walks a graph as ggml's CUDA backend
// does: once to see whether the graph can be captured, then to launch or capture,
// with some nodes fused and a look ahead at others.
#include "fake_cuda.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

bool ggml_is_empty(const void * tensor);
int ggml_graph_n_nodes(void * graph);
void * ggml_graph_node(void * graph, int i);
const char * ggml_op_desc(const void * tensor);
const char * ggml_get_name(const void * tensor);

enum mode { DIRECT, CAPTURE, REPLAY };
enum mode fake_mode = DIRECT;

static struct graph * executable;
static char stream;

// A kernel's name says which op it is for, and the tensor it computes.
static const char * kernel_for(void * node) {
    static char names[MOST_NODES][96];
    static int used;
    char name[96];
    snprintf(name, sizeof name, "kernel %s %s", ggml_op_desc(node), ggml_get_name(node));
    for (int i = 0; i < used; i++) {
        if (__builtin_strcmp(names[i], name) == 0) {
            return names[i];
        }
    }
    snprintf(names[used], sizeof names[used], "%s", name);
    return names[used++];
}

static bool is(void * graph, int i, const char * op) {
    return i < ggml_graph_n_nodes(graph) && __builtin_strcmp(ggml_op_desc(ggml_graph_node(graph, i)), op) == 0;
}

static __attribute__((noinline)) bool can_be_captured(void * graph) {
    bool can = true;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        can &= !ggml_is_empty(ggml_graph_node(graph, i));
    }
    return can;
}

// Looks at the nodes behind; 1 when the next is computed with this one.
static __attribute__((noinline)) int fused_behind(void * graph, int i) {
    for (int ahead = i + 1; ahead < i + 3 && ahead < ggml_graph_n_nodes(graph); ahead++) {
        if (ggml_is_empty(ggml_graph_node(graph, ahead))) {
            return 0;
        }
    }
    return is(graph, i, "RMS_NORM") && is(graph, i + 1, "MUL");
}

static __attribute__((noinline)) void launch_all(void * graph) {
    struct size3 one = {1, 1, 1};
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        void * node = ggml_graph_node(graph, i);
        if (ggml_is_empty(node) || is(graph, i, "RESHAPE")) {
            continue;
        }
        int fused = fused_behind(graph, i);
        cudaLaunchKernel(kernel_for(node), one, one, NULL, 0, &stream);
        if (is(graph, i, "MUL_MAT")) {
            cudaLaunchKernel(kernel_for(node), one, one, NULL, 0, &stream);
        }
        i += fused;
    }
}

int fake_graph_compute(void * backend, void * graph) {
    (void) backend;
    bool can = can_be_captured(graph);
    if (fake_mode == REPLAY && executable) {
        return cudaGraphLaunch(executable, &stream);
    }
    if (fake_mode != CAPTURE || !can) {
        launch_all(graph);
        return 0;
    }
    struct graph * captured;
    cudaStreamBeginCapture(&stream, 2);
    launch_all(graph);
    cudaStreamEndCapture(&stream, &captured);
    cudaGraphInstantiate(&executable, captured, 0);
    cudaGraphDestroy(captured);
    return cudaGraphLaunch(executable, &stream);
}

// As the newest ggml does.
#ifdef KNOWS_CHUNKS
const char * fake_chunk_size(void) { return getenv("GGML_CUDA_GRAPH_CHUNK_SIZE"); }
#endif

void fake_copy_in(void) { cudaMemcpyAsync(NULL, NULL, 4096, 1, &stream); }
