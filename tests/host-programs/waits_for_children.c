// A program that looks after its own children: nobody else's may turn up. argv[2]: what
// to do with SIGCHLD, "handle" or "ignore".
#include "tiny_ggml.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int signals;

static void count(int signal) {
    (void) signal;
    signals++;
}

int main(int argc, char ** argv) {
    signal(SIGCHLD, argc > 2 && strcmp(argv[2], "ignore") == 0 ? SIG_IGN : count);
    sigset_t before, after;
    sigprocmask(SIG_SETMASK, NULL, &before);
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 3);
    TINY(void (*)(void *), "ggml_backend_sched_free")(session.scheduler);
    sigprocmask(SIG_SETMASK, NULL, &after);
    if (signals != 0 || memcmp(&before, &after, sizeof before) != 0) {
        return 1;
    }
    if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) {
        return 2;
    }
    return 9;
}
