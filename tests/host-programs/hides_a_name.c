// A library that seems to hide a ggml: it has a function of that name for itself, and much code. It shows
// another one.
__asm__(".text\n.skip 300000, 0xcc\n");

__attribute__((noinline, used)) static int ggml_backend_sched_new(int number) {
    __asm__ volatile("" : "+r"(number));
    return number + 1;
}

int shown(void) {
    return ggml_backend_sched_new(41);
}
