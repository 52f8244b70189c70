// Backends come and go, some with an abort callback of the program's: each callback is called for
// the graphs of the backend that it was set for, as long as it is set, and for nothing else. Prints
// what each graph came to and how often each callback was called.
#include "tiny_ggml.h"
#include <malloc.h>

typedef bool (*callback)(void *);

// C++'s new and delete, for everything in the process: where a backend was, the next one is.
static void * wanted, * kept;

void * _Znwm(size_t bytes) {
    size_t room = kept ? malloc_usable_size(kept) : 0;
    if (bytes <= room && bytes + 24 > room) {
        void * again = kept;
        kept = NULL;
        return again;
    }
    return malloc(bytes);
}

void _ZdlPvm(void * place, size_t bytes) {
    (void) bytes;
    if (place && place == wanted) {
        kept = place;
    } else {
        free(place);
    }
}

void _ZdlPv(void * place) { _ZdlPvm(place, 0); }

static void free_backend(void * backend) {
    wanted = backend;
    TINY(void (*)(void *), "ggml_backend_free")(backend);
    wanted = NULL;
}

static int stops, counts, replaced;
static void * backend_of_replaced;

static void set(void * backend, callback function, void * data) {
    typedef void (*setter)(void *, callback, void *);
    TINY(setter, "ggml_backend_cpu_set_abort_callback")(backend, function, data);
}

static bool stop(void * data) {
    (void) data;
    stops++;
    return true;
}

static bool count(void * data) {
    (void) data;
    counts++;
    return false;
}

// Puts another in its own place, in the middle of a graph.
static bool replace(void * data) {
    (void) data;
    replaced++;
    set(backend_of_replaced, count, NULL);
    return false;
}

static void free_session(struct tiny_session * session) {
    TINY(void (*)(void *), "ggml_backend_sched_free")(session->scheduler);
    free_backend(session->backend);
}

static void say(const char * what, int status) {
    printf("%s: status=%d stops=%d counts=%d replaced=%d\n", what, status, stops, counts, replaced);
    stops = counts = replaced = 0;
}

static int run(struct tiny_session * session) {
    return tiny_run(session, tiny_build(session, 10, NULL));
}

// A backend where another one was that is gone.
static struct tiny_session start_at(void * address) {
    struct tiny_session session = tiny_start(1);
    if (session.backend != address) {
        fprintf(stderr, "the backend is somewhere else\n");
        exit(93);
    }
    return session;
}

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session first = tiny_start(1);
    set(first.backend, stop, NULL);
    say("stopped", run(&first));
    free_session(&first);
    struct tiny_session second = start_at(first.backend);
    say("another backend at its place", run(&second));
    free_session(&second);

    // One that never computes, and that nobody hears of but by its callback.
    void * unseen = TINY(void * (*)(void), "ggml_backend_cpu_init")();
    set(unseen, stop, NULL);
    free_backend(unseen);
    struct tiny_session third = start_at(unseen);
    say("at the place of one that never computed", run(&third));

    backend_of_replaced = third.backend;
    set(third.backend, replace, NULL);
    say("replaced in the middle", run(&third));
    say("by another", run(&third));
    set(third.backend, NULL, NULL);
    say("taken out", run(&third));
    set(third.backend, stop, NULL);
    say("and stopped", run(&third));
    free_session(&third);
    return 0;
}
