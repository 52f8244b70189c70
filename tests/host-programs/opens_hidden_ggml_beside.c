// Opens a library that hides a ggml of its own. Then one thread opens a library whose constructor
// takes a while, with the loader locked, a second one asks the loader something meanwhile, and
// when that waits, a third one asks for the hidden ggml and lets it compute. Arguments: that of
// the constructor, its milliseconds, the library with ggml, and what its function gets.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sem_t locked;
static const char * slow_library;
static int milliseconds;

void when_opened(void) {
    sem_post(&locked);
    sem_post(&locked);
    usleep(milliseconds * 1000);
}

// By a function of the loader that nobody stands in for.
static void * open_slowly(void * unused) {
    dlmopen(LM_ID_BASE, slow_library, RTLD_NOW);
    return unused;
}

static void * ask(void * unused) {
    sem_wait(&locked);
    dlsym(RTLD_DEFAULT, "no such function");
    return unused;
}

int main(int argc, char ** argv) {
    slow_library = argv[1];
    milliseconds = atoi(argv[2]);
    void * library = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, open_slowly, NULL);
    pthread_create(&threads[1], NULL, ask, NULL);
    sem_wait(&locked);
    usleep(10000);
    int (*compute)(int, char **) = (int (*)(int, char **)) dlsym(library, "compute");
    int status = compute(argc - 3, argv + 3);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return status;
}
