// Hands batches to a libllama in which there is nothing but a small graph to compute: so what it takes
// to note a call can be told from what it takes to compute one. Compiled with -DLIBRARY, it is that
// libllama. Arguments: the directory of ggml's libraries; the way (`decode`, `process`, or `graph`, which
// computes the graph and calls nothing of libllama); tokens of a batch; times. Prints how long the call of
// median length took.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct llama_batch {
    int32_t n_tokens;
    int32_t * token;
    float * embd;
    int32_t * pos;
    int32_t * n_seq_id;
    int32_t ** seq_id;
    int8_t * logits;
};

// Of the newer kind: which rows it has is known to nobody else.
struct llama_batch_ext {
    int32_t rows;
    int64_t sum;
};

int llama_decode(void * context, struct llama_batch batch);
struct llama_batch llama_batch_init(int32_t tokens, int32_t embedding, int32_t sequences);
int32_t llama_batch_ext_add_token(struct llama_batch_ext * batch, int32_t sequence, int32_t token);
bool llama_batch_ext_set_pos(struct llama_batch_ext * batch, int32_t row, const int32_t * position);
bool llama_batch_ext_set_output_logits(struct llama_batch_ext * batch, int32_t row, bool wanted);
void llama_batch_ext_clear(struct llama_batch_ext * batch);
int llama_process(void * context, int kind, struct llama_batch_ext * batch);
int compute_alone(void * context);

#ifdef LIBRARY

// What computes is the first thing in a context.
struct context {
    int (*compute)(void *, void *);
    void * scheduler;
    void * graph;
};

int compute_alone(void * context) {
    struct context * of = context;
    return of->compute(of->scheduler, of->graph);
}

int llama_decode(void * context, struct llama_batch batch) {
    return batch.n_tokens > 0 ? compute_alone(context) : -1;
}

int llama_process(void * context, int kind, struct llama_batch_ext * batch) {
    return kind == 1 && batch->rows > 0 ? compute_alone(context) : -1;
}

struct llama_batch llama_batch_init(int32_t tokens, int32_t embedding, int32_t sequences) {
    struct llama_batch batch = {0};
    size_t count = (size_t) tokens;
    if (embedding) {
        batch.embd = malloc(sizeof(float) * count * (size_t) embedding);
    } else {
        batch.token = malloc(sizeof(int32_t) * count);
    }
    batch.pos = malloc(sizeof(int32_t) * count);
    batch.n_seq_id = malloc(sizeof(int32_t) * count);
    batch.seq_id = malloc(sizeof(int32_t *) * (count + 1));
    for (size_t i = 0; i < count; i++) {
        batch.seq_id[i] = malloc(sizeof(int32_t) * (size_t) sequences);
    }
    batch.seq_id[count] = NULL;
    batch.logits = malloc(count);
    return batch;
}

int32_t llama_batch_ext_add_token(struct llama_batch_ext * batch, int32_t sequence, int32_t token) {
    batch->sum += sequence + token;
    return batch->rows++;
}

bool llama_batch_ext_set_pos(struct llama_batch_ext * batch, int32_t row, const int32_t * position) {
    batch->sum += row + *position;
    return true;
}

bool llama_batch_ext_set_output_logits(struct llama_batch_ext * batch, int32_t row, bool wanted) {
    batch->sum += row + wanted;
    return true;
}

void llama_batch_ext_clear(struct llama_batch_ext * batch) {
    batch->rows = 0;
}

#else
#include "tiny_ggml.h"
#include <time.h>

struct work {
    void * context;
    struct llama_batch batch;
    struct llama_batch_ext ext;
    int tokens;
};

static int graph(struct work * work) {
    return compute_alone(work->context);
}

static int decode(struct work * work) {
    work->batch.n_tokens = work->tokens;
    for (int i = 0; i < work->tokens; i++) {
        work->batch.token[i] = 1;
        work->batch.pos[i] = i;
        work->batch.n_seq_id[i] = 1;
        work->batch.seq_id[i][0] = 0;
        work->batch.logits[i] = i == work->tokens - 1;
    }
    return llama_decode(work->context, work->batch);
}

static int process(struct work * work) {
    llama_batch_ext_clear(&work->ext);
    for (int32_t i = 0; i < work->tokens; i++) {
        int32_t row = llama_batch_ext_add_token(&work->ext, 0, 1);
        llama_batch_ext_set_pos(&work->ext, row, &i);
        llama_batch_ext_set_output_logits(&work->ext, row, i == work->tokens - 1);
    }
    return llama_process(work->context, 1, &work->ext);
}

static long nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static int by_size(const void * a, const void * b) {
    long left = *(const long *) a, right = *(const long *) b;
    return left < right ? -1 : left > right;
}

int main(int count, char ** words) {
    if (count != 5) {
        return 2;
    }
    tiny_open(words[1]);
    struct tiny_session session = tiny_start(1);
    void * graph_to_compute = tiny_build(&session, 1, NULL);
    typedef int (*compute)(void *, void *);
    struct {
        compute compute;
        void * scheduler;
        void * graph;
    } context = {
        TINY(compute, "ggml_backend_sched_graph_compute"), session.scheduler, graph_to_compute
    };
    int tokens = atoi(words[3]), times = atoi(words[4]);
    struct work work = {&context, llama_batch_init(tokens, 0, 1), {0, 0}, tokens};
    int (*way)(struct work *) =
        strcmp(words[2], "decode") == 0 ? decode : strcmp(words[2], "process") == 0 ? process : graph;
    long * took = calloc((size_t) times + 1, sizeof *took);
    for (int i = 0; i < times; i++) {
        long start = nanoseconds();
        if (way(&work) != 0) {
            return 1;
        }
        took[i] = nanoseconds() - start;
    }
    qsort(took, (size_t) times, sizeof *took, by_size);
    printf("done computed=%d median_ns=%ld\n", times, times ? took[times / 2] : 0);
    return 0;
}
#endif
