// Computes until somebody writes to it, and forks all the while: each child computes as well. Ends with 0
// if all of them ended as they should. `beside` makes a thread that waits and does nothing.
#include "tiny_ggml.h"
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void * wait_for_ever(void * unused) {
    poll(NULL, 0, -1);
    return unused;
}

static bool is_told(void) {
    struct pollfd input = { 0, POLLIN, 0 };
    return poll(&input, 1, 0) != 0;
}

int main(int argc, char ** argv) {
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 1);
    pthread_t beside;
    if (argc > 2 && pthread_create(&beside, NULL, wait_for_ever, NULL) != 0) {
        return 2;
    }
    puts("ready");
    fflush(stdout);
    int failed = 0;
    while (!is_told()) {
        pid_t child = fork();
        if (child == 0) {
            tiny_compute(&session, 2);
            _exit(17);
        }
        tiny_compute(&session, 3);
        int status = 0;
        waitpid(child, &status, 0);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 17;
    }
    return failed != 0;
}
