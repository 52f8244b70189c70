// A library that stands in for the loader's functions, as graphics debuggers do: it counts and
// passes on to the next one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>

static atomic_long closed;

int dlclose(void * library) {
    static int (*next)(void *);
    if (!next) {
        next = (int (*)(void *)) dlsym(RTLD_NEXT, "dlclose");
    }
    atomic_fetch_add(&closed, 1);
    return next(library);
}
