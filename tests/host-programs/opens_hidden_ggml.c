// Opens a library that hides a ggml of its own, lets it compute, closes it, and does all of it
// again: the second time it may lie at the same address. Arguments: the library, and those of
// its function `compute`.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char ** argv) {
    for (int round = 0; round < 2; round++) {
        void * library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        int (*compute)(int, char **) = (int (*)(int, char **)) dlsym(library, "compute");
        int status = compute(argc - 1, argv + 1);
        dlclose(library);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}
