// Its first thread ends when another one has been made, which computes until its input ends.
#include "tiny_ggml.h"
#include <pthread.h>
#include <unistd.h>

static void * go_on(void * directory) {
    usleep(100000);
    tiny_open(directory);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 2);
    printf("ready\n");
    fflush(stdout);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    tiny_compute(&session, 2);
    exit(0);
}

int main(int argc, char ** argv) {
    (void) argc;
    pthread_t thread;
    pthread_create(&thread, NULL, go_on, argv[1]);
    pthread_exit(NULL);
}
