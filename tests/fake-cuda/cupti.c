// The tracing library of the fake device. It follows NVIDIA's headers in what it
// is asked for and in the bytes it gives back. The environment makes it misbehave:
//
//   FAKE_CUPTI_VERSION=N      cuptiGetVersion says N
//   FAKE_CUPTI_FAIL=NAME:N    the function of that name returns N
//   FAKE_CUPTI_DROPPED=N      N records were dropped
//   FAKE_CUPTI_ZERO=1         every other record has no times
//   FAKE_CUPTI_REVERSE=1      records come last first
#include "fake_cuda.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void (*callback)(void *, uint32_t, uint32_t, const void *);
static void (*requested)(uint8_t **, size_t *, size_t *);
static void (*completed)(void *, uint32_t, uint8_t *, size_t, size_t);
static uint64_t (*timestamp)(void);
static bool runtime_on[1024], driver_on[1024], resource_on[64], kind_on[64];
static struct work kept[MOST_WORK];
static size_t kept_count;
static size_t dropped;

static uint32_t fail(const char * name) {
    const char * wanted = getenv("FAKE_CUPTI_FAIL");
    size_t length = strlen(name);
    bool meant = wanted && strncmp(wanted, name, length) == 0 && wanted[length] == ':';
    return meant ? (uint32_t) atoi(wanted + length + 1) : 0;
}

#define MAY_FAIL                           \
    do {                                   \
        uint32_t status = fail(__func__);  \
        if (status) {                      \
            return status;                 \
        }                                  \
    } while (0)

static bool asked(const char * name) { return getenv(name) != NULL; }

struct call_data {
    uint32_t site;
    const char * function;
    const void * parameters;
    void * result;
    const char * symbol;
    void * context;
    uint32_t context_number;
    uint64_t * data;
    uint32_t correlation;
};

struct graph_data {
    void * graph, * original_graph;
    struct node * node, * original;
    int type;
    struct node * dependency;
    void * executable;
};

struct resource_data {
    void * context, * stream;
    struct graph_data * descriptor;
};

static void on_call(uint32_t domain, uint32_t id, int enters, uint32_t correlation) {
    bool * on = domain == 2 ? runtime_on : driver_on;
    if (callback && on[id]) {
        struct call_data data = {.site = !enters, .correlation = correlation};
        callback(NULL, domain, id, &data);
    }
}

static void on_node(uint32_t id, struct node * node, struct node * original) {
    if (callback && resource_on[id]) {
        struct graph_data graph = {.node = node, .original = original};
        struct resource_data data = {NULL, NULL, &graph};
        callback(NULL, 3, id, &data);
    }
}

static void on_made(struct node * node) { on_node(13, node, NULL); }
static void on_copied(struct node * node, struct node * original) { on_node(20, node, original); }

static void on_work(const struct work * work) {
    if (kind_on[work->bytes ? 1 : 10] && kept_count < MOST_WORK) {
        kept[kept_count++] = *work;
    }
}

__attribute__((constructor)) static void loaded(void) {
    if (fake_when_loaded) {
        fake_when_loaded();
    }
}

static const struct listener listener = {on_call, on_made, on_copied, on_work};

uint32_t cuptiGetVersion(uint32_t * version) {
    MAY_FAIL;
    const char * wanted = getenv("FAKE_CUPTI_VERSION");
    *version = wanted ? (uint32_t) atoi(wanted) : 130001;
    return 0;
}

uint32_t cuptiSubscribe(void ** subscriber, void (*function)(void *, uint32_t, uint32_t, const void *), void * user) {
    (void) user;
    MAY_FAIL;
    if (callback) {
        return 39;
    }
    *subscriber = &callback;
    callback = function;
    fake_listen(&listener);
    return 0;
}

uint32_t cuptiUnsubscribe(void * subscriber) {
    (void) subscriber;
    MAY_FAIL;
    callback = NULL;
    return 0;
}

uint32_t cuptiEnableCallback(uint32_t on, void * subscriber, uint32_t domain, uint32_t id) {
    (void) subscriber;
    MAY_FAIL;
    bool * table = domain == 1 ? driver_on : domain == 2 ? runtime_on : resource_on;
    table[id] = on;
    return 0;
}

uint32_t cuptiGetGraphNodeId(struct node * node, uint64_t * id) {
    MAY_FAIL;
    *id = node->id;
    return 0;
}

uint32_t cuptiActivityRegisterCallbacks(void * request, void * complete) {
    MAY_FAIL;
    memcpy(&requested, &request, sizeof request);
    memcpy(&completed, &complete, sizeof complete);
    return 0;
}

uint32_t cuptiActivityRegisterTimestampCallback(uint64_t (*function)(void)) {
    MAY_FAIL;
    timestamp = function;
    return 0;
}

uint32_t cuptiActivityEnable(uint32_t kind) {
    MAY_FAIL;
    kind_on[kind] = true;
    return 0;
}

uint32_t cuptiActivityDisable(uint32_t kind) {
    MAY_FAIL;
    kind_on[kind] = false;
    return 0;
}

// Bytes of a record: as in CUDA 13.0.
static size_t record_bytes(uint32_t kind) { return kind == 10 ? 216 : 96; }

static void put(uint8_t * record, const struct work * work, bool timed) {
    uint32_t kind = work->bytes ? 1 : 10, device = 0, stream = 7;
    uint64_t start = timed ? work->start : 0, end = timed ? work->end : 0;
    memset(record, 0, record_bytes(kind));
    memcpy(record, &kind, 4);
    memcpy(record + 16, &start, 8);
    memcpy(record + 24, &end, 8);
    if (kind == 10) {
        memcpy(record + 40, &device, 4);
        memcpy(record + 48, &stream, 4);
        memcpy(record + 92, &work->correlation, 4);
        memcpy(record + 104, &work->kernel, 8);
        memcpy(record + 144, &work->graph_node, 8);
    } else {
        record[4] = 1;  // from the host to the device,
        record[5] = 1;  // from pageable memory
        record[6] = 3;
        memcpy(record + 8, &work->bytes, 8);
        memcpy(record + 32, &device, 4);
        memcpy(record + 40, &stream, 4);
        memcpy(record + 44, &work->correlation, 4);
        memcpy(record + 64, &work->graph_node, 8);
    }
}

uint32_t cuptiActivityFlushAll(uint32_t flag) {
    (void) flag;
    MAY_FAIL;
    const char * lost = getenv("FAKE_CUPTI_DROPPED");
    dropped = lost ? (size_t) atoi(lost) : 0;
    size_t given = 0;
    while (given < kept_count) {
        uint8_t * buffer = NULL;
        size_t size = 0, most = 0, used = 0;
        requested(&buffer, &size, &most);
        if (!buffer) {
            return 0;
        }
        while (given < kept_count && used + 256 <= size) {
            size_t next = asked("FAKE_CUPTI_REVERSE") ? kept_count - 1 - given : given;
            put(buffer + used, &kept[next], !asked("FAKE_CUPTI_ZERO") || given % 2 == 0);
            used += record_bytes(kept[next].bytes ? 1 : 10);
            given++;
        }
        completed(NULL, 0, buffer, size, used);
    }
    kept_count = 0;
    return 0;
}

uint32_t cuptiActivityGetNextRecord(uint8_t * buffer, size_t valid, uint8_t ** record) {
    MAY_FAIL;
    uint8_t * next = buffer;
    if (*record) {
        uint32_t kind;
        memcpy(&kind, *record, 4);
        next = *record + record_bytes(kind);
    }
    if (next >= buffer + valid) {
        return 12;
    }
    *record = next;
    return 0;
}

uint32_t cuptiActivityGetNumDroppedRecords(void * context, uint32_t stream, size_t * count) {
    (void) context, (void) stream;
    MAY_FAIL;
    *count = dropped;
    dropped = 0;
    return 0;
}

uint32_t cuptiFinalize(void) {
    MAY_FAIL;
    fake_listen(NULL);
    callback = NULL;
    memset(runtime_on, 0, sizeof runtime_on);
    memset(driver_on, 0, sizeof driver_on);
    memset(resource_on, 0, sizeof resource_on);
    return 0;
}
