// Children that do not use ggml, and may not make processes: whoever tries is killed. They end in
// both ways there are. Prints how.
#include "tiny_ggml.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_AT(number)                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static void forbid_processes(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL_AT(__NR_clone),
        KILL_AT(__NR_clone3),
#ifdef __NR_fork
        KILL_AT(__NR_fork),
        KILL_AT(__NR_vfork),
#endif
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(3);
    }
}

int main(int argc, char ** argv) {
    (void) argc;
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 2);
    for (int at_once = 0; at_once < 2; at_once++) {
        pid_t child = fork();
        if (child == 0) {
            forbid_processes();
            at_once ? _exit(17) : exit(17);
        }
        int status = 0;
        waitpid(child, &status, 0);
        printf("child %s %d\n", WIFEXITED(status) ? "exit" : "signal",
               WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        fflush(stdout);
    }
    tiny_compute(&session, 1);
    return 0;
}
