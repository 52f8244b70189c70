// Asks the loader whether somebody has functions of ggml and libllama, as plug-ins and bindings do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static void ask(void *handle, const char *name) {
    void *function = dlsym(handle, name);
    const char *error = dlerror();
    printf("%s: %s%s\n", name, function ? "there" : "not there", error ? ", with an error" : "");
}

int main(void) {
    const char *names[] = {"ggml_backend_sched_graph_compute", "ggml_backend_free", "llama_decode"};
    void *program = dlopen(NULL, RTLD_NOW);
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        ask(RTLD_DEFAULT, names[i]);
        ask(RTLD_NEXT, names[i]);
        ask(program, names[i]);
    }
    ask(RTLD_DEFAULT, "puts");
    return 0;
}
