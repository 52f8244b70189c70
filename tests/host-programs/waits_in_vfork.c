// Its first thread waits for a child that has all of its memory, and cannot be stopped meanwhile; another
// one computes. The child ends when its input does.
#include "tiny_ggml.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int computes;

static void * compute(void * directory) {
    tiny_open(directory);
    struct tiny_session session = tiny_start(1);
    void * graph = tiny_build(&session, 100, NULL);
    for (;;) {
        tiny_run(&session, graph);
        atomic_store(&computes, 1);
    }
    return NULL;
}

static void until_input_ends(void) {
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
}

int main(int argc, char ** argv) {
    (void) argc;
    pthread_t thread;
    pthread_create(&thread, NULL, compute, argv[1]);
    while (!atomic_load(&computes)) {
        usleep(1000);
    }
    printf("ready\n");
    fflush(stdout);
    pid_t child = vfork();
    if (child == 0) {
        until_input_ends();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    _exit(0);
}
