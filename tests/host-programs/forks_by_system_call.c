// No fork handler hears of this child.
#include "tiny_ggml.h"
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 3);
    // What `fork` does, on every processor.
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        tiny_compute(&session, 5);
        _exit(0);
    }
    int status = 0;
    waitpid((pid_t) child, &status, 0);
    tiny_compute(&session, 2);
    return status;
}
