// The recording's path was relative when the program started.
#include "tiny_ggml.h"
#include <unistd.h>

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    if (chdir("/") != 0) {
        return 1;
    }
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 5000);
    return 0;
}
