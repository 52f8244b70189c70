// Makes 300 backends with a scheduler each and computes two graphs on every one: each is freed
// before the next is made, at another address (argv[2] is `after`), or all live at once
// (`together`), in which case the first graphs of all come before the second ones.
#include "tiny_ggml.h"

enum { BACKENDS = 300 };

static void end(struct tiny_session * session) {
    TINY(void (*)(void *), "ggml_backend_sched_free")(session->scheduler);
    TINY(void (*)(void *), "ggml_backend_free")(session->backend);
    TINY(void (*)(void *), "ggml_free")(session->context);
}

// Takes the places of what was freed, whatever its size, and keeps them from the next backend.
static void occupy(void) {
    for (size_t bytes = 64; bytes < 1024; bytes += 16) {
        static void * volatile last;
        last = malloc(bytes);
        (void) last;
    }
}

int main(int argc, char ** argv) {
    static struct tiny_session sessions[BACKENDS];
    bool together = argc > 2 && strcmp(argv[2], "together") == 0;
    tiny_open(argv[1]);
    for (int i = 0; i < BACKENDS; i++) {
        sessions[i] = tiny_start(1);
        tiny_compute(&sessions[i], together ? 1 : 2);
        if (!together) {
            end(&sessions[i]);
            occupy();
        }
    }
    for (int i = 0; together && i < BACKENDS; i++) {
        tiny_compute(&sessions[i], 1);
    }
    for (int i = 0; i < BACKENDS; i++) {
        if (together) {
            end(&sessions[i]);
        }
    }
    printf("graphs=%d\n", 2 * BACKENDS);
    return 0;
}
