// Sends itself SIGUSR2 between its graphs. While nothing is recorded it makes a second backend
// and scheduler. With a second argument it has its own use for the signal: set up before it
// touches ggml ("before") or after its first graphs ("after").
#include "tiny_ggml.h"
#include <signal.h>

static volatile sig_atomic_t received;

static void receive(int signal) {
    (void) signal;
    received++;
}

int main(int argc, char ** argv) {
    const char * own = argc > 2 ? argv[2] : "";
    if (strcmp(own, "before") == 0) {
        signal(SIGUSR2, receive);
    }
    tiny_open(argv[1]);
    struct tiny_session first = tiny_start(1);
    tiny_compute(&first, 3);
    if (strcmp(own, "after") == 0) {
        signal(SIGUSR2, receive);
    }
    raise(SIGUSR2);
    tiny_compute(&first, 4);
    struct tiny_session second = tiny_start(1);
    tiny_compute(&second, 2);
    raise(SIGUSR2);
    tiny_compute(&second, 5);
    tiny_compute(&first, 1);
    printf("received=%d\n", (int) received);
    return 0;
}
