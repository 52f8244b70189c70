// A debugger in a hurry: attaches to all threads of a process, stops them, lets them go on, and
// detaches, again and again. Arguments: the process, how often, and the microseconds between.
// Ends when the process does.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_THREADS = 256 };

static int threads_of(const char * process, pid_t * threads) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/task", process);
    DIR * entries = opendir(path);
    struct dirent * entry;
    int count = 0;
    while (entries && count < MOST_THREADS && (entry = readdir(entries))) {
        pid_t thread = atoi(entry->d_name);
        if (thread > 0) {
            threads[count++] = thread;
        }
    }
    if (entries) {
        closedir(entries);
    }
    return count;
}

// Waits until the thread stops, passing on the signals that reach it before.
static bool wait_until_stopped(pid_t thread) {
    int status;
    while (waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status)) {
        if (status >> 16 == PTRACE_EVENT_STOP) {
            return true;
        }
        ptrace(PTRACE_CONT, thread, NULL, (void *) (long) WSTOPSIG(status));
    }
    return false;
}

static void visit(pid_t thread, useconds_t pause) {
    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0) {
        return;
    }
    ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
    if (!wait_until_stopped(thread)) {
        return;
    }
    usleep(pause / 4);
    ptrace(PTRACE_CONT, thread, NULL, NULL);
    ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
    if (wait_until_stopped(thread)) {
        ptrace(PTRACE_DETACH, thread, NULL, NULL);
    }
}

int main(int argc, char ** argv) {
    if (argc < 4) {
        return 2;
    }
    int times = atoi(argv[2]);
    useconds_t pause = atoi(argv[3]);
    pid_t threads[MOST_THREADS];
    for (int i = 0; i < times; i++) {
        int count = threads_of(argv[1], threads);
        if (count == 0) {
            return 0;
        }
        for (int j = 0; j < count; j++) {
            visit(threads[j], pause);
        }
        usleep(pause);
    }
    return 0;
}
