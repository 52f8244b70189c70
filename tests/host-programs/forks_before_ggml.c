// A server that starts its workers first: parent and child each use ggml.
#include "tiny_ggml.h"
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char ** argv) {
    (void) argc;
    pid_t child = fork();
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, child == 0 ? 4 : 2);
    if (child == 0) {
        return 0;
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}
