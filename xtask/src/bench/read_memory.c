// Reads memory as STREAM would, if it had a test that only reads: each thread adds up its own part of an
// array that is much larger than all caches. Prints the best of all passes, in bytes per second.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { MOST_THREADS = 1024 };

static uint64_t *words;
static size_t words_of_thread;
static int threads, passes;
static pthread_barrier_t barrier;
static uint64_t sums[MOST_THREADS];
// Whoever only waits for the threads may be woken late, so each notes its own times.
static double starts[MOST_THREADS], ends[MOST_THREADS];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

static void *work(void *argument) {
    size_t number = (size_t) argument;
    uint64_t *own = words + number * words_of_thread;
    // Whoever writes a page first has it in its own memory.
    for (size_t at = 0; at < words_of_thread; at++) own[at] = at;
    for (int pass = 0; pass < passes; pass++) {
        pthread_barrier_wait(&barrier);
        starts[number] = now();
        uint64_t sum = 0;
        for (size_t at = 0; at < words_of_thread; at++) sum += own[at];
        sums[number] += sum;
        ends[number] = now();
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    threads = atoi(arguments[1]);
    size_t bytes = (size_t) atoi(arguments[2]) << 20;
    passes = atoi(arguments[3]);
    if (threads < 1 || threads > MOST_THREADS || passes < 1) return 2;
    words_of_thread = bytes / sizeof *words / (size_t) threads;
    words = aligned_alloc(1 << 21, bytes);
    if (!words) return 1;
    madvise(words, bytes, MADV_HUGEPAGE);
    pthread_barrier_init(&barrier, NULL, (unsigned) threads + 1);
    pthread_t thread;
    for (size_t number = 0; number < (size_t) threads; number++) {
        if (pthread_create(&thread, NULL, work, (void *) number)) return 1;
    }
    double best = 0;
    for (int pass = 0; pass < passes; pass++) {
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        double start = starts[0], end = ends[0];
        for (int number = 1; number < threads; number++) {
            if (starts[number] < start) start = starts[number];
            if (ends[number] > end) end = ends[number];
        }
        double rate = (double) (words_of_thread * (size_t) threads * sizeof *words) / (end - start);
        if (rate > best) best = rate;
    }
    uint64_t sum = 0;
    for (int number = 0; number < threads; number++) sum += sums[number];
    printf("%.0f\n", best);
    // The sums are used, so that no compiler leaves them out.
    return sum == 1;
}
