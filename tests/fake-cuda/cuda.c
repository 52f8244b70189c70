// The driver and the runtime of the fake device.
#include "fake_cuda.h"
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

static const struct listener * heard;
static struct graph * captured;
static uint32_t correlations;
static uint64_t next_id = 1;

void (*fake_when_loaded)(void);

void fake_listen(const struct listener * listener) { heard = listener; }

uint64_t fake_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

// A call of the runtime, and the driver's that it makes.
static uint32_t call(uint32_t runtime_id, uint32_t driver_id) {
    uint32_t correlation = ++correlations;
    if (heard) {
        heard->call(2, runtime_id, 1, correlation);
        heard->call(1, driver_id, 1, correlation);
        heard->call(1, driver_id, 0, correlation);
        heard->call(2, runtime_id, 0, correlation);
    }
    return correlation;
}

static void run(const char * kernel, uint64_t bytes, uint64_t graph_node, uint32_t correlation) {
    uint64_t start = fake_now();
    while (fake_now() < start + 1000) {
    }
    struct work work = {kernel, start, fake_now(), bytes, graph_node, correlation};
    if (heard) {
        heard->worked(&work);
    }
}

int cudaLaunchKernel(const void * name, struct size3 grid, struct size3 block, void ** arguments, size_t shared, void * stream) {
    (void) grid, (void) block, (void) arguments, (void) shared, (void) stream;
    uint32_t correlation = call(211, 307);
    if (!captured) {
        run(name, 0, 0, correlation);
    } else {
        struct node * node = &captured->nodes[captured->count++];
        *node = (struct node) {next_id++, name};
        if (heard) {
            heard->node_made(node);
        }
    }
    return 0;
}

int cudaMemcpyAsync(void * to, const void * from, size_t bytes, int kind, void * stream) {
    (void) to, (void) from, (void) kind, (void) stream;
    run("", bytes, 0, call(41, 277));
    return 0;
}

int cudaStreamBeginCapture(void * stream, int mode) {
    (void) stream, (void) mode;
    captured = calloc(1, sizeof *captured);
    return 0;
}

int cudaStreamEndCapture(void * stream, struct graph ** graph) {
    (void) stream;
    *graph = captured;
    captured = NULL;
    return 0;
}

int cudaGraphInstantiate(struct graph ** executable, struct graph * graph, unsigned long long flags) {
    (void) flags;
    *executable = calloc(1, sizeof **executable);
    (*executable)->count = graph->count;
    for (int i = 0; i < graph->count; i++) {
        struct node * node = &(*executable)->nodes[i];
        *node = (struct node) {next_id++, graph->nodes[i].kernel};
        if (heard) {
            heard->node_copied(node, &graph->nodes[i]);
        }
    }
    return 0;
}

// The next graph's nodes get the numbers of this one's.
int cudaGraphDestroy(struct graph * graph) {
    if (graph->count && graph->nodes[0].id < next_id) {
        next_id = graph->nodes[0].id;
    }
    free(graph);
    return 0;
}

int cudaGraphLaunch(struct graph * executable, void * stream) {
    (void) stream;
    uint32_t correlation = call(311, 514);
    for (int i = 0; i < executable->count; i++) {
        run(executable->nodes[i].kernel, 0, executable->nodes[i].id, correlation);
    }
    return 0;
}

// The driver's view of the graph being captured: a chain of kernels.
int cuStreamGetCaptureInfo_v2(void * stream, unsigned * status, uint64_t * id, struct graph ** graph, void * nodes, size_t * count) {
    (void) stream, (void) nodes, (void) count;
    *status = captured != NULL;
    *id = 1;
    *graph = captured;
    return 0;
}

int cuGraphGetNodes(struct graph * graph, struct node ** nodes, size_t * count) {
    for (size_t i = 0; nodes && i < *count; i++) {
        nodes[i] = &graph->nodes[i];
    }
    *count = (size_t) graph->count;
    return 0;
}

int cuGraphNodeGetType(struct node * node, unsigned * type) {
    (void) node;
    *type = 0;
    return 0;
}

int cuGraphGetEdges_v2(struct graph * graph, void * from, void * to, void * data, size_t * count) {
    (void) from, (void) to, (void) data;
    bool side_by_side = getenv("FAKE_CUDA_CONCURRENT") != NULL;
    *count = (size_t) graph->count - (side_by_side ? 0 : 1);
    return 0;
}

// The driver's events; work is over when it was asked for.
int cuEventCreate(uint64_t ** event, unsigned flags) {
    (void) flags;
    *event = calloc(1, sizeof **event);
    return 0;
}

int cuEventRecord(uint64_t * event, void * stream) {
    (void) stream;
    *event = fake_now();
    return 0;
}

int cuEventQuery(uint64_t * event) {
    (void) event;
    return 0;
}

int cuEventSynchronize(uint64_t * event) {
    (void) event;
    return 0;
}

int cuEventElapsedTime(float * milliseconds, uint64_t * from, uint64_t * to) {
    *milliseconds = (float) ((double) (*to - *from) / 1e6);
    return 0;
}
