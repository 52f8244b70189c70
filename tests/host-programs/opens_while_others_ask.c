// One thread uses ggml for the first time. When somebody on it asks the loader for the n-th time
// (argv[3]) whether a library is there, another thread opens a library (argv[2]) whose constructor
// uses ggml as well, and so while the loader is locked. Prints whether anybody asked that often.
// A program that is made to wait for itself is ended by a signal.
#define _GNU_SOURCE
#include "tiny_ggml.h"
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static sem_t asked, locked;
static _Thread_local bool is_first_user;
static int questions_left;
static void * (*backend_new)(int, const char *);
static void * (*scheduler_new)(void **, void *, int, size_t, bool, bool);
static void (*scheduler_free)(void *);

// Stands in for libc's, for everything in the process.
void * dlopen(const char * path, int mode) {
    static void * (*real)(const char *, int);
    if (!real) {
        real = (void * (*)(const char *, int)) dlsym(RTLD_NEXT, "dlopen");
    }
    if (is_first_user && (mode & RTLD_NOLOAD) && --questions_left == 0) {
        sem_post(&asked);
        sem_wait(&locked);
    }
    return real(path, mode);
}

void when_opened(void) {
    sem_post(&locked);
    void * backend = backend_new(0, NULL);
    scheduler_free(scheduler_new(&backend, NULL, 1, 256, false, true));
}

static void * use_ggml(void * unused) {
    is_first_user = true;
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 2);
    is_first_user = false;
    if (questions_left > 0) {
        sem_post(&asked);
    }
    return unused;
}

int main(int argc, char ** argv) {
    (void) argc;
    alarm(60);
    tiny_open(argv[1]);
    backend_new = TINY(void * (*)(int, const char *), "ggml_backend_init_by_type");
    scheduler_new =
        TINY(void * (*)(void **, void *, int, size_t, bool, bool), "ggml_backend_sched_new");
    scheduler_free = TINY(void (*)(void *), "ggml_backend_sched_free");
    questions_left = atoi(argv[3]);
    sem_init(&asked, 0, 0);
    sem_init(&locked, 0, 0);
    pthread_t first_user;
    pthread_create(&first_user, NULL, use_ggml, NULL);
    sem_wait(&asked);
    if (!dlopen(argv[2], RTLD_NOW)) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    pthread_join(first_user, NULL);
    printf("asked=%d\n", questions_left <= 0);
    return 0;
}
