// Forks while another thread is opening a library (argv[2]) and has come halfway: it waits for a
// third one, which holds a lock of the loader. In the child the loader stays so for ever; but the
// child only computes, with what is there.
#define _GNU_SOURCE
#include "tiny_ggml.h"
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t walking, over;

static int wait_in_walk(struct dl_phdr_info * info, size_t size, void * data) {
    (void) info, (void) size, (void) data;
    sem_post(&walking);
    sem_wait(&over);
    return 1;
}

static void * walk(void * unused) {
    dl_iterate_phdr(wait_in_walk, NULL);
    return unused;
}

static void * open_other(void * path) {
    dlopen(path, RTLD_NOW);
    return path;
}

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 3);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, walk, NULL);
    sem_wait(&walking);
    pthread_create(&threads[1], NULL, open_other, argv[2]);
    usleep(200000);
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        struct tiny_session own = tiny_start(1);
        tiny_compute(&own, 5);
        _exit(17);
    }
    int status = 0;
    waitpid(child, &status, 0);
    sem_post(&over);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    tiny_compute(&session, 2);
    printf("child %s %d\n", WIFEXITED(status) ? "exit" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return 0;
}
