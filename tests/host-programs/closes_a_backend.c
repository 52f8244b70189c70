// A plugin host closes one backend's library again and again while another thread computes on
// another backend. argv[2] is the library that stays, argv[3] the one that comes and goes.
// Prints how many graphs each of the two has computed.
#include "tiny_plugin.h"
#include <pthread.h>
#include <stdatomic.h>

enum { ROUNDS = 20, FEWEST = 100 };

static atomic_bool over;

static void * compute_until_over(void * library) {
    struct tiny_session session = tiny_start_on(library);
    long graphs = 0;
    while (!over || graphs < FEWEST) {
        tiny_compute(&session, 1);
        graphs++;
    }
    tiny_end(&session);
    return (void *) graphs;
}

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open_library(argv[1], "libggml-base.so", RTLD_GLOBAL);
    void * stays = tiny_open_library(argv[1], argv[2], RTLD_LOCAL);
    pthread_t other;
    pthread_create(&other, NULL, compute_until_over, stays);
    for (int round = 0; round < ROUNDS; round++) {
        void * comes_and_goes = tiny_open_library(argv[1], argv[3], RTLD_LOCAL);
        struct tiny_session session = tiny_start_on(comes_and_goes);
        tiny_compute(&session, 2);
        tiny_end(&session);
        dlclose(comes_and_goes);
    }
    over = true;
    void * graphs;
    pthread_join(other, &graphs);
    printf("other=%ld here=%d\n", (long) graphs, 2 * ROUNDS);
    return 0;
}
