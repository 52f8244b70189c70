// Two schedulers side by side, both freed, and then a third. Prints what the profile's
// size is after each of these steps; argv[2] is its path.
#include "tiny_ggml.h"
#include <sys/stat.h>

static long size_of(const char * path) {
    struct stat facts;
    return stat(path, &facts) == 0 ? (long) facts.st_size : 0;
}

static void free_scheduler(struct tiny_session * session) {
    TINY(void (*)(void *), "ggml_backend_sched_free")(session->scheduler);
}

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session first = tiny_start(1), second = tiny_start(1);
    tiny_compute(&first, 2);
    tiny_compute(&second, 3);
    free_scheduler(&first);
    printf("one left %ld\n", size_of(argv[2]));
    free_scheduler(&second);
    printf("none left %ld\n", size_of(argv[2]));
    struct tiny_session third = tiny_start(1);
    tiny_compute(&third, 4);
    return 0;
}
