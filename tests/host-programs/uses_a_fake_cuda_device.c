// Computes a graph on the fake device of `fake-cuda`, several times: argv[2] is the
// folder of its libraries, and each further word a run (direct, capture, replay), a
// copy, or a wait in milliseconds. The word `beside`, before all runs, makes another thread
// compute once while the tracing library is being loaded; `reopen` closes the device's library
// and opens it again. `FAKE_GGML` names another of its libraries than the newest.
#include "fake_device.h"
#include <pthread.h>
#include <unistd.h>

static void * backend, * graph;
static int (*graph_compute)(void *, void *);

// One place that calls, so that the loader need not be asked again.
static __attribute__((noinline)) void compute(void) {
    if (graph_compute(backend, graph) != 0) {
        exit(92);
    }
}

static void * compute_beside(void * unused) {
    compute();
    return unused;
}

// Runs inside a constructor, while the loader is locked.
static void when_loaded(void) {
    pthread_t other;
    pthread_create(&other, NULL, compute_beside, NULL);
    pthread_join(other, NULL);
}

int main(int count, char ** words) {
    tiny_open(words[1]);
    struct tiny_session session = tiny_start(1);
    void * driver = open_in(words[2], "libcuda.so.1");
    const char * other = getenv("FAKE_GGML");
    const char * file = other ? other : "libggml-fake.so";
    void * library = open_in(words[2], file);
    backend = backend_like(session.backend, dlsym(library, "fake_graph_compute"), nothing);
    int * mode = dlsym(library, "fake_mode");
    void (*copy_in)(void) = (void (*)(void)) dlsym(library, "fake_copy_in");
    void (**loaded)(void) = dlsym(driver, "fake_when_loaded");
    graph = build(&session);
    graph_compute = TINY(int (*)(void *, void *), "ggml_backend_graph_compute");
    for (int i = 3; i < count; i++) {
        int times = 1;
        char word[64];
        sscanf(words[i], "%63[a-z]%d", word, &times);
        if (strcmp(word, "wait") == 0) {
            usleep((unsigned) times * 1000);
            continue;
        }
        if (strcmp(word, "beside") == 0) {
            alarm(60);
            *loaded = when_loaded;
            continue;
        }
        if (strcmp(word, "reopen") == 0) {
            TINY(void (*)(void *), "ggml_backend_free")(backend);
            if (dlclose(library) != 0 || dlopen(file, RTLD_LAZY | RTLD_NOLOAD)) {
                return 93;
            }
            library = open_in(words[2], file);
            backend = backend_like(session.backend, dlsym(library, "fake_graph_compute"), nothing);
            mode = dlsym(library, "fake_mode");
            continue;
        }
        for (int n = 0; n < times; n++) {
            if (strcmp(word, "copy") == 0) {
                copy_in();
                continue;
            }
            *mode = strcmp(word, "capture") == 0 ? 1 : strcmp(word, "replay") == 0 ? 2 : 0;
            compute();
        }
    }
    return 0;
}
