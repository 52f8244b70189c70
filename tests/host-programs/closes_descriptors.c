// A daemon closes every descriptor it does not know, and its own files then get
// their numbers. argv[2] is a file of the program's own: it must keep its bytes
// while the recording grows.
#define _GNU_SOURCE
#include "tiny_ggml.h"
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 1);
    for (int fd = 3; fd < 256; fd++) {
        close(fd);
    }
    int own[40];
    for (int i = 0; i < 40; i++) {
        own[i] = open(argv[2], O_RDWR | O_CREAT, 0600);
        if (own[i] < 0) {
            return 1;
        }
    }
    if (write(own[0], "mine", 4) != 4) {
        return 2;
    }
    tiny_compute(&session, 5000);
    return lseek(own[0], 0, SEEK_END) == 4 ? 0 : 3;
}
