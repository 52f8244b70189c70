// The program's own abort callback is called as often as without us, and its
// answer counts. Prints how often, and the status of the graph it stopped.
#include "tiny_ggml.h"

static int calls;
static int stop_after;

static bool should_stop(void * data) {
    calls++;
    return data == &calls && stop_after && calls >= stop_after;
}

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    tiny_stop_if(session.backend, should_stop, &calls);
    int first = tiny_run(&session, tiny_build(&session, 10, NULL));
    printf("calls=%d status=%d\n", calls, first);
    calls = 0;
    stop_after = 4;
    int second = tiny_run(&session, tiny_build(&session, 10, NULL));
    printf("calls=%d status=%d\n", calls, second);
    tiny_stop_if(session.backend, NULL, NULL);
    calls = 0;
    tiny_compute(&session, 1);
    printf("calls=%d\n", calls);
    return 0;
}
