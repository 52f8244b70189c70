// ggml is used by a constructor, by main and by an exit handler. (A destructor
// comes too late for ggml itself: its C++ statics are gone by then.)
#include "tiny_ggml.h"
#include <unistd.h>

static struct tiny_session session;

static void at_exit(void) {
    tiny_compute(&session, 1);
}

__attribute__((constructor)) static void before_main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    session = tiny_start(1);
    tiny_compute(&session, 1);
}

int main(void) {
    atexit(at_exit);
    tiny_compute(&session, 1);
    return 0;
}
