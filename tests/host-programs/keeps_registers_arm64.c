// Opens ggml's libraries and then, in a loop, fills every register of vectors and most of the others, and
// checks that they keep what was put there. It ends, with 0, when somebody writes a line to it; with 1 when
// a register has changed. Arguments: the libraries' directory.
#include <fcntl.h>
#include <unistd.h>

#include "tiny_ggml.h"

#define EACH(of) \
    of(0) of(1) of(2) of(3) of(4) of(5) of(6) of(7) of(8) of(9) of(10) of(11) of(12) of(13) of(14) of(15) \
    of(16) of(17) of(18) of(19) of(20) of(21) of(22) of(23) of(24) of(25) of(26) of(27) of(28) of(29) of(30) of(31)
#define FILL(n) "dup v" #n ".2d, x1\n add x1, x1, #1\n"
#define KEEP(n) "str q" #n ", [%1, #16 * " #n "]\n"
#define NAME(n) "v" #n,

// Its name tells that a thread in it is computing.
__attribute__((noinline)) static int ggml_checks_registers(void) {
    uint64_t found[32][2], others[8], *at = &found[0][0], *other = others;
    __asm__ volatile(
        "mov x1, #42\n" EACH(FILL)
        "mov x9, #9\n mov x10, #10\n mov x15, #15\n mov x16, #16\n mov x17, #17\n mov x21, #21\n mov x28, #28\n"
        "mov x2, #100\n cmp x2, #100\n"
        "mov x3, #0x30000\n"
        "1: sub x3, x3, #1\n cbnz x3, 1b\n"
        EACH(KEEP)
        "stp x9, x10, [%0]\n stp x15, x16, [%0, #16]\n stp x17, x21, [%0, #32]\n"
        "cset x2, eq\n stp x28, x2, [%0, #48]\n"
        :
        : "r"(other), "r"(at)
        : EACH(NAME) "x1", "x2", "x3", "x9", "x10", "x15", "x16", "x17", "x21", "x28", "cc", "memory");
    for (int i = 0; i < 32; i++) {
        if (found[i][0] != (uint64_t) (42 + i) || found[i][1] != found[i][0]) {
            return 0;
        }
    }
    static const uint64_t expected[8] = { 9, 10, 15, 16, 17, 21, 28, 1 };
    return memcmp(others, expected, sizeof others) == 0;
}

int main(int argc, char ** argv) {
    tiny_open(argv[argc - 1]);
    fcntl(0, F_SETFL, O_NONBLOCK);
    char line;
    while (read(0, &line, 1) != 1) {
        if (!ggml_checks_registers()) {
            return 1;
        }
    }
    return 0;
}
