// Copies a small tensor in the way argv[2] (`copy`, `set_async`, `set` or `get`), argv[3] times, and
// prints how long the copy of median length took.
#include "tiny_ggml.h"
#include <time.h>

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
    tiny_open(words[1]);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 1);
    struct tiny_init_params params = {1 << 20, NULL, true};
    void * context = TINY(void * (*)(struct tiny_init_params), "ggml_init")(params);
    typedef void * (*new_1d)(void *, int, int64_t);
    void * from = TINY(new_1d, "ggml_new_tensor_1d")(context, 0, 8);
    void * to = TINY(new_1d, "ggml_new_tensor_1d")(context, 0, 8);
    TINY(void * (*)(void *, const char *), "ggml_set_name")(from, "from");
    TINY(void * (*)(void *, const char *), "ggml_set_name")(to, "CPU#inp_tokens#0");
    TINY(void * (*)(void *, void *), "ggml_backend_alloc_ctx_tensors")(context, session.backend);
    float data[8] = {0};
    void (*copy)(void *, void *) = TINY(void (*)(void *, void *), "ggml_backend_tensor_copy");
    typedef void (*async)(void *, void *, const void *, size_t, size_t);
    async set_async = TINY(async, "ggml_backend_tensor_set_async");
    typedef void (*plain)(void *, void *, size_t, size_t);
    plain set = TINY(plain, "ggml_backend_tensor_set"), get = TINY(plain, "ggml_backend_tensor_get");
    int times = count > 3 ? atoi(words[3]) : 1;
    const char * way = count > 2 ? words[2] : "get";
    bool copies = strcmp(way, "copy") == 0, sets_async = strcmp(way, "set_async") == 0;
    bool sets = strcmp(way, "set") == 0;
    // Sixteen at once: reading the clock takes as long as a copy does.
    enum { AT_ONCE = 16 };
    long * took = calloc((size_t) times / AT_ONCE + 1, sizeof *took);
    for (int i = 0; i < times; i++) {
        long start = i % AT_ONCE == 0 ? nanoseconds() : 0;
        if (start) {
            took[i / AT_ONCE] = -start;
        }
        if (copies) {
            copy(from, to);
        } else if (sets_async) {
            set_async(session.backend, to, data, 0, sizeof data);
        } else if (sets) {
            set(to, data, 0, sizeof data);
        } else {
            get(to, data, 0, sizeof data);
        }
        if (i % AT_ONCE == AT_ONCE - 1) {
            took[i / AT_ONCE] += nanoseconds();
        }
    }
    int groups = times / AT_ONCE;
    qsort(took, (size_t) groups, sizeof *took, by_size);
    printf("done computed=%d median_ns=%.1f\n", times, groups ? (double) took[groups / 2] / AT_ONCE : 0);
    return 0;
}
