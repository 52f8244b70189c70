// A thread that another one has cancelled ends where it next waits for something. argv[2] says what
// it does before: it opens a library (argv[3]) and asks for a function of it, or is the first to use
// ggml. Prints how far it came; what it had to clean up is cleaned up in any case.
#include "tiny_ggml.h"
#include <pthread.h>
#include <stdatomic.h>

static const char * libraries, * what, * library;
static atomic_bool is_cancelled;
static int came, cleaned;

static void clean(void * unused) {
    (void) unused;
    cleaned++;
}

static void * work(void * unused) {
    pthread_cleanup_push(clean, NULL);
    while (!is_cancelled) {
    }
    if (strcmp(what, "opens") == 0) {
        void * opened = dlopen(library, RTLD_NOW);
        came += opened && !dlsym(opened, "there_is_none");
    } else {
        struct tiny_session session = tiny_start(1);
        came++;
        tiny_compute(&session, 2);
    }
    came++;
    pthread_testcancel();
    came++;
    pthread_cleanup_pop(0);
    return unused;
}

int main(int argc, char ** argv) {
    libraries = argv[1], what = argv[2], library = argc > 3 ? argv[3] : NULL;
    tiny_open(libraries);
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_cancel(thread);
    is_cancelled = true;
    void * result = NULL;
    pthread_join(thread, &result);
    printf("came=%d cleaned=%d cancelled=%d\n", came, cleaned, result == PTHREAD_CANCELED);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 3);
    return 0;
}
