// Preloaded: starts a thread that computes for ever, and a process that debugs it. Nobody else can stop
// this thread, so code cannot be changed while all threads stand.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int debugged;

static void * compute(void * unused) {
    (void) unused;
    atomic_store(&debugged, (int) syscall(SYS_gettid));
    for (;;) {
    }
    return NULL;
}

static void debug(int thread, int ready) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (ptrace(PTRACE_SEIZE, thread, 0, 0) == 0) {
        (void) !write(ready, "", 1);
    }
    for (;;) {
        pause();
    }
}

__attribute__((constructor)) static void begin(void) {
    unsetenv("LD_PRELOAD");
    pthread_t thread;
    pthread_create(&thread, NULL, compute, NULL);
    while (atomic_load(&debugged) == 0) {
    }
    int ends[2];
    if (pipe(ends) != 0) {
        _exit(1);
    }
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (fork() == 0) {
        debug(atomic_load(&debugged), ends[1]);
    }
    close(ends[1]);
    char byte;
    if (read(ends[0], &byte, 1) != 1) {
        _exit(1);
    }
    close(ends[0]);
}
