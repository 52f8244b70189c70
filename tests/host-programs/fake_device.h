// Backends on the fake device of `fake-cuda`, made from one of the processor's.
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include "tiny_ggml.h"

enum { WORDS = 64 };

static const char * name(void * object) {
    (void) object;
    return "FAKE0";
}

static int gpu(void * device) {
    (void) device;
    return 1;
}

static void nothing(void * backend) { (void) backend; }

// Another backend's struct with other functions in it: places as in ggml since
// April 2026, of which the library in use is one.
static void * backend_like(void * backend, void * compute, void (*synchronize)(void *)) {
    void ** device = calloc(WORDS, sizeof *device), ** copy = calloc(WORDS, sizeof *copy);
    memcpy(copy, backend, 19 * sizeof(void *));
    memcpy(device, copy[17], 16 * sizeof(void *));
    device[0] = device[1] = (void *) name;
    device[3] = (void *) gpu;
    copy[1] = (void *) name;
    copy[2] = (void *) nothing;
    copy[7] = NULL;
    copy[8] = (void *) synchronize;
    copy[13] = compute;
    copy[17] = device;
    return copy;
}

static inline void * open_in(const char * folder, const char * file) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    void * library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(91);
    }
    return library;
}

typedef void * (*one)(void *, void *);
typedef void * (*two)(void *, void *, void *);

// A norm with its factor, a reshape, a product, and sums.
static inline void * build(struct tiny_session * session) {
    struct tiny_init_params params = {1 << 20, NULL, true};
    session->context = TINY(void * (*)(struct tiny_init_params), "ggml_init")(params);
    typedef void * (*new_2d)(void *, int, int64_t, int64_t);
    void * a = TINY(new_2d, "ggml_new_tensor_2d")(session->context, 0, 32, 32);
    void * b = TINY(new_2d, "ggml_new_tensor_2d")(session->context, 0, 32, 32);
    void * norm = TINY(void * (*)(void *, void *, float), "ggml_rms_norm")(session->context, a, 1e-5f);
    void * scaled = TINY(two, "ggml_mul")(session->context, norm, b);
    typedef void * (*reshape)(void *, void *, int64_t, int64_t);
    void * flat = TINY(reshape, "ggml_reshape_2d")(session->context, scaled, 32, 32);
    void * product = TINY(two, "ggml_mul_mat")(session->context, b, flat);
    void * sum = product;
    for (int i = 0; i < 5; i++) {
        sum = TINY(two, "ggml_add")(session->context, sum, b);
    }
    void * last = TINY(one, "ggml_sqr")(session->context, sum);
    typedef void * (*new_graph)(void *, size_t, bool);
    void * graph = TINY(new_graph, "ggml_new_graph_custom")(session->context, 64, false);
    TINY(void (*)(void *, void *), "ggml_build_forward_expand")(graph, last);
    return graph;
}

#endif
