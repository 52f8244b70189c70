#include "tiny_ggml.h"

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(2);
    tiny_compute(&session, 3);
    abort();
}
