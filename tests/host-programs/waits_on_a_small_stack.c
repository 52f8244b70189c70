// A thread of it waits on a small stack in the middle of memory that is used for something else: one that it
// has changed to, as coroutines do, or, with another argument, one that it was made with. Ends when somebody
// writes to it or its input ends: with 1 if anything below that stack has changed.
#include "tiny_ggml.h"
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { BYTES = 1 << 20, BELOW = BYTES / 2, STACK = 64 << 10, FILLED = 0x5a };

static unsigned char * memory;
static ucontext_t outside, inside;

static void wait_long(void) {
    printf("ready\n");
    fflush(stdout);
    struct timespec long_time = {1000, 0};
    for (;;) {
        nanosleep(&long_time, NULL);
    }
}

static void * change_stacks(void * unused) {
    (void) unused;
    getcontext(&inside);
    inside.uc_stack.ss_sp = memory + BELOW;
    inside.uc_stack.ss_size = STACK;
    inside.uc_link = &outside;
    makecontext(&inside, wait_long, 0);
    swapcontext(&outside, &inside);
    return NULL;
}

static void * stay(void * unused) {
    (void) unused;
    wait_long();
    return NULL;
}

int main(int argc, char ** argv) {
    tiny_open(argv[1]);
    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, FILLED, BYTES);
    pthread_attr_t with;
    pthread_attr_init(&with);
    if (argc > 2) {
        pthread_attr_setstack(&with, memory + BELOW, STACK);
    }
    pthread_t thread;
    pthread_create(&thread, &with, argc > 2 ? stay : change_stacks, NULL);
    char byte;
    (void) !read(STDIN_FILENO, &byte, 1);
    for (int i = 0; i < BELOW; i++) {
        if (memory[i] != FILLED) {
            _exit(1);
        }
    }
    _exit(0);
}
