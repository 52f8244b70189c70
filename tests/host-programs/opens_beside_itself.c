// Opens a library by its bare name: the loader finds it by the path that is written into this
// program, because this program asks. A stand-in that asks in its place would not find it.
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    void * library = dlopen("libfound.so", RTLD_NOW);
    int (*answer)(void) = library ? (int (*)(void)) dlsym(library, "answer") : NULL;
    printf("%d\n", answer ? answer() : 0);
    return 0;
}
