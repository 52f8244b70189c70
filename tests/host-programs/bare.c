// A program without any library, for systems of which there is none here: it says a word
// and ends with 5 as soon as it can read something, or its input ends.
static long call(long number, long a, long b, long c) {
    long result;
#ifdef __i386__
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
#else
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#endif
    return result;
}

void _start(void) {
    char read;
#ifdef __i386__
    call(4, 1, (long) "bare\n", 5);
    call(3, 0, (long) &read, 1);
    call(1, 5, 0, 0);
#else
    call(1, 1, (long) "bare\n", 5);
    call(0, 0, (long) &read, 1);
    call(60, 5, 0, 0);
#endif
}
