// An operation of the program's own forks. The child returns from the graph as the parent does,
// and must not write into the parent's recording.
#include "tiny_ggml.h"
#include <sys/wait.h>
#include <unistd.h>

static pid_t child = -1;

static void fork_once(void * to, const void * from, int thread, int threads, void * unused) {
    (void) to, (void) from, (void) thread, (void) threads, (void) unused;
    if (child < 0) {
        child = fork();
    }
}

static void * custom(void * context, void * tensor) {
    typedef void (*operation)(void *, const void *, int, int, void *);
    typedef void * (*map)(void *, void *, operation, int, void *);
    return TINY(map, "ggml_map_custom1")(context, tensor, fork_once, 1, NULL);
}

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 2);
    if (tiny_run(&session, tiny_build(&session, 10, custom)) != 0) {
        return 1;
    }
    if (child == 0) {
        tiny_compute(&session, 3);
        _exit(17);
    }
    int status = 0;
    waitpid(child, &status, 0);
    tiny_compute(&session, 2);
    return WIFEXITED(status) && WEXITSTATUS(status) == 17 ? 0 : 2;
}
