// On a system without libgcc_s, as far as those can tell who ask for it while the program runs.
#define _GNU_SOURCE
#include "tiny_ggml.h"

// Stands in for libc's, for everything in the process.
void * dlopen(const char * path, int mode) {
    static void * (*real)(const char *, int);
    if (!real) {
        real = (void * (*)(const char *, int)) dlsym(RTLD_NEXT, "dlopen");
    }
    return path && strstr(path, "libgcc_s") ? NULL : real(path, mode);
}

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 2);
    puts("done");
    return 0;
}
