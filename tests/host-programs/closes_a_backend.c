// A plugin host closes one backend's library again and again while another thread computes on
// another backend. argv[2] is the library that stays, argv[3] the one that comes and goes.
// Prints how many graphs each of the two has computed.
#include "tiny_ggml.h"
#include <pthread.h>
#include <stdatomic.h>

enum { ROUNDS = 20, FEWEST = 100 };

static atomic_bool over;

static void * open_library(const char * directory, const char * name, int mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    void * library = dlopen(path, RTLD_NOW | mode);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(91);
    }
    return library;
}

static struct tiny_session start_on(void * library) {
    struct tiny_session session = {0};
    session.backend = ((void * (*)(void)) dlsym(library, "ggml_backend_cpu_init"))();
    ((void (*)(void *, int)) dlsym(library, "ggml_backend_cpu_set_n_threads"))(session.backend, 1);
    typedef void * (*sched_new)(void **, void *, int, size_t, bool, bool);
    session.scheduler =
        TINY(sched_new, "ggml_backend_sched_new")(&session.backend, NULL, 1, 256, false, true);
    return session;
}

static void end(struct tiny_session * session) {
    TINY(void (*)(void *), "ggml_free")(session->context);
    TINY(void (*)(void *), "ggml_backend_sched_free")(session->scheduler);
    TINY(void (*)(void *), "ggml_backend_free")(session->backend);
}

static void * compute_until_over(void * library) {
    struct tiny_session session = start_on(library);
    long graphs = 0;
    while (!over || graphs < FEWEST) {
        tiny_compute(&session, 1);
        graphs++;
    }
    end(&session);
    return (void *) graphs;
}

int main(int argc, char ** argv) {
    (void) argc;
    open_library(argv[1], "libggml-base.so", RTLD_GLOBAL);
    void * stays = open_library(argv[1], argv[2], RTLD_LOCAL);
    pthread_t other;
    pthread_create(&other, NULL, compute_until_over, stays);
    for (int round = 0; round < ROUNDS; round++) {
        void * comes_and_goes = open_library(argv[1], argv[3], RTLD_LOCAL);
        struct tiny_session session = start_on(comes_and_goes);
        tiny_compute(&session, 2);
        end(&session);
        dlclose(comes_and_goes);
    }
    over = true;
    void * graphs;
    pthread_join(other, &graphs);
    printf("other=%ld here=%d\n", (long) graphs, 2 * ROUNDS);
    return 0;
}
