// The program's abort callback leaves ggml by longjmp, as in R, Lua or Postgres, where that is how
// errors are told. argv[2] says how far down the stack ggml is used afterwards: as before, less far,
// or further. Graphs and their tensors are freed each time, and others are made.
#include "tiny_ggml.h"
#include <setjmp.h>

static jmp_buf back;
static int calls, leave_at;

static bool should_stop(void * data) {
    (void) data;
    if (leave_at && ++calls == leave_at) {
        longjmp(back, 1);
    }
    return false;
}

__attribute__((noinline)) static int compute(struct tiny_session * session, int depth) {
    volatile char room[64];
    memset((void *) room, depth, sizeof room);
    if (depth > 0) {
        return compute(session, depth - 1) + (room[7] != depth);
    }
    return tiny_run(session, tiny_build(session, 10, NULL));
}

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    int how = atoi(argv[2]);
    struct tiny_session session = tiny_start(1);
    tiny_stop_if(session.backend, should_stop, NULL);
    tiny_compute(&session, 2);
    volatile int left = 0;
    for (int i = 0; i < 3; i++) {
        calls = 0;
        leave_at = 4;
        if (setjmp(back) == 0) {
            compute(&session, 20);
        } else {
            left++;
        }
        leave_at = 0;
        for (int again = 0; again < 3; again++) {
            if (compute(&session, 20 + how) != 0) {
                return 1;
            }
        }
    }
    printf("left=%d\n", left);
    return 0;
}
