// _exit runs no handlers and no destructors.
#include "tiny_ggml.h"
#include <unistd.h>

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 3);
    _exit(7);
}
