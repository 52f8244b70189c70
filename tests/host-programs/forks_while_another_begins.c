// Forks while another thread is the first to use ggml, and the file of its recording takes long to
// come to be: `fallocate` here stands in for libc's, and waits until the child has ended. The child
// uses ggml, too.
#define _GNU_SOURCE
#include "tiny_ggml.h"
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t begun, over;
static pid_t parent;

int fallocate(int file, int mode, off_t offset, off_t bytes) {
    if (getpid() == parent) {
        parent = 0;
        sem_post(&begun);
        sem_wait(&over);
    }
    return syscall(SYS_fallocate, file, mode, offset, bytes);
}

static void * begin(void * unused) {
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 3);
    // Where nobody makes a file.
    sem_post(&begun);
    return unused;
}

int main(int argc, char ** argv) {
    (void) argc;
    parent = getpid();
    tiny_open(argv[1]);
    pthread_t thread;
    pthread_create(&thread, NULL, begin, NULL);
    sem_wait(&begun);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        struct tiny_session own = tiny_start(1);
        tiny_compute(&own, 5);
        TINY(void (*)(void *), "ggml_backend_sched_free")(own.scheduler);
        TINY(void (*)(void *), "ggml_backend_free")(own.backend);
        _exit(17);
    }
    int status = 0;
    waitpid(child, &status, 0);
    sem_post(&over);
    pthread_join(thread, NULL);
    printf("child %s %d\n", WIFEXITED(status) ? "exit" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return 0;
}
