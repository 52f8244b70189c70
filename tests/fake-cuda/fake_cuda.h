// A device that computes nothing but remembers what it was asked to: the few
// functions of CUDA that ggml's backend and the agent call, with a clock that is
// the host's. `cuda.c` is driver and runtime, `cupti.c` the tracing library.
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H
#include <stddef.h>
#include <stdint.h>

enum { MOST_NODES = 4096, MOST_WORK = 1 << 16 };

// A node of a graph. The tracing library numbers them; numbers are used again.
struct node {
    uint64_t id;
    const char * kernel;
};
struct graph {
    int count;
    struct node nodes[MOST_NODES];
};

// One kernel or copy that ran. `bytes` is 0 for a kernel.
struct work {
    const char * kernel;
    uint64_t start, end, bytes, graph_node;
    uint32_t correlation;
};

// What the tracing library hears, where one is attached.
struct listener {
    void (*call)(uint32_t domain, uint32_t id, int enters, uint32_t correlation);
    void (*node_made)(struct node * node);
    void (*node_copied)(struct node * node, struct node * original);
    void (*worked)(const struct work * work);
};

void fake_listen(const struct listener * listener);
// Called when the tracing library is loaded, if it is set.
extern void (*fake_when_loaded)(void);
uint64_t fake_now(void);

// As CUDA has them, as far as the arguments matter here.
struct size3 { unsigned x, y, z; };
int cudaLaunchKernel(const void * name, struct size3 grid, struct size3 block, void ** arguments, size_t shared, void * stream);
int cudaMemcpyAsync(void * to, const void * from, size_t bytes, int kind, void * stream);
int cudaStreamBeginCapture(void * stream, int mode);
int cudaStreamEndCapture(void * stream, struct graph ** graph);
int cudaGraphInstantiate(struct graph ** executable, struct graph * graph, unsigned long long flags);
int cudaGraphDestroy(struct graph * graph);
int cudaGraphLaunch(struct graph * executable, void * stream);
#endif
