// The child inherits a recording that is the parent's: it must leave that alone, and make another.
#include "tiny_ggml.h"
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 3);
    pid_t child = fork();
    if (child == 0) {
        tiny_compute(&session, 5);
        _exit(17);
    }
    int status = 0;
    waitpid(child, &status, 0);
    tiny_compute(&session, 2);
    return WIFEXITED(status) && WEXITSTATUS(status) == 17 ? 0 : 1;
}
