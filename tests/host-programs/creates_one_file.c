// A preloaded library with which a process may create one file: from then on the system ends it for opening
// another one that it could write to. Programs that only read do not notice.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void limit_calls(void) {
    static atomic_bool limited;
    if (atomic_exchange(&limited, true)) {
        return;
    }
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * 2),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_ACCMODE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        || syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
        _exit(125);
    }
}

// As libc's functions do it.
static int open_by(const char * path, int flags, unsigned mode) {
    int file = syscall(__NR_openat, AT_FDCWD, path, flags, mode);
    if (file >= 0 && (flags & O_CREAT)) {
        limit_calls();
    }
    return file;
}

#define OPENS(name)                                                                                \
    int name(const char * path, int flags, ...) {                                                  \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        unsigned mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, unsigned) : 0;              \
        va_end(rest);                                                                              \
        return open_by(path, flags, mode);                                                         \
    }

OPENS(open)
OPENS(open64)
