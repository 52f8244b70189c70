#include <stdio.h>

int main(void) {
    puts("no ggml here");
    return 3;
}
