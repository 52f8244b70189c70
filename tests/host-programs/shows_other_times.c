// To be preloaded: programs are shown clocks that run ten times as fast, as tests do with libfaketime.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec * now) {
    long result = syscall(SYS_clock_gettime, clock, now);
    now->tv_sec *= 10;
    return (int) result;
}
