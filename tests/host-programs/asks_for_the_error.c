// Asks for a function of a library (argv[2]) as manuals say: whether it failed is told by `dlerror`.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char ** argv) {
    (void) argc;
    void * library = dlopen(argv[2], RTLD_NOW);
    for (int i = 0; library && i < 2; i++) {
        dlerror();
        int (*shown)(void) = (int (*)(void)) dlsym(library, "shown");
        const char * error = dlerror();
        printf("%s, %d\n", error ? error : "no error", shown ? shown() : 0);
    }
    return library ? 0 : 1;
}
