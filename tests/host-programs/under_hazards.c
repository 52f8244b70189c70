// Makes the conditions that its first arguments name, and becomes the program behind `--`:
//
//   limit=files:N limit=memory:BYTES limit=size:BYTES limit=stack:BYTES
//   full=DIRECTORY:BYTES  readonly=DIRECTORY  noexec=DIRECTORY  hidden=DIRECTORY
//   refuse=mprotect|mapping|process_vm|fork|reserving|new_calls   mdwe
//   core=NUMBER nice=NUMBER idle close=DESCRIPTOR ignore=SIGNAL umask=OCTAL
//   before=LIBRARY behind=LIBRARY         preloaded before or behind what is
//
// Exits with 125 and a sentence where the system does not allow one of them.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include <unistd.h>

// Newer than the headers of some systems.
#define SET_MDWE 65
#define REFUSE_EXEC_GAIN 1

static void require(bool done, const char * what) {
    if (!done) {
        fprintf(stderr, "not possible here: %s: %s\n", what, strerror(errno));
        exit(125);
    }
}

static void write_to(const char * path, const char * text) {
    int file = open(path, O_WRONLY);
    require(file >= 0 && write(file, text, strlen(text)) >= 0, path);
    close(file);
}

// Mounts of our own, for root as they are, for others where only they are root.
static void leave_mounts(void) {
    static bool left;
    if (left) {
        return;
    }
    left = true;
    if (geteuid() == 0) {
        require(unshare(CLONE_NEWNS) == 0, "a mount namespace");
    } else {
        char map[64];
        unsigned user = geteuid(), group = getegid();
        require(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "a user namespace");
        write_to("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "%u %u 1", user, user);
        write_to("/proc/self/uid_map", map);
        snprintf(map, sizeof map, "%u %u 1", group, group);
        write_to("/proc/self/gid_map", map);
    }
    require(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "mounts of our own");
}

static void mount_empty(const char * place, unsigned long flags, const char * options) {
    leave_mounts();
    require(mount("none", place, "tmpfs", flags, options) == 0, place);
}

static void mount_full(char * place) {
    char * bytes = strrchr(place, ':');
    *bytes++ = 0;
    char options[64];
    snprintf(options, sizeof options, "size=%s,mode=777", bytes);
    mount_empty(place, 0, options);
}

static void limit(char * what) {
    static const struct {
        const char * name;
        int resource;
    } KINDS[] = { { "files", RLIMIT_NOFILE }, { "memory", RLIMIT_AS }, { "size", RLIMIT_FSIZE },
                  { "stack", RLIMIT_STACK } };
    char * number = strchr(what, ':');
    *number++ = 0;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        if (strcmp(what, KINDS[i].name) == 0) {
            struct rlimit value = { strtoul(number, NULL, 10), strtoul(number, NULL, 10) };
            require(setrlimit(KINDS[i].resource, &value) == 0, what);
        }
    }
}

// A system call that is answered with an error, if the masked bits of its arguments are these.
struct condition {
    int argument;
    unsigned mask;
    unsigned bits;
};

struct refusal {
    const char * name;
    int call;
    int error;
    struct condition first, second; // without a mask: always so
};

static const struct refusal REFUSALS[] = {
    { "mprotect", SYS_mprotect, EACCES, { 2, PROT_EXEC, PROT_EXEC } },
    { "mprotect", SYS_pkey_mprotect, EACCES, { 2, PROT_EXEC, PROT_EXEC } },
    // Libraries are loaded from files, other memory may not be run.
    { "mapping", SYS_mmap, EACCES, { 2, PROT_EXEC, PROT_EXEC },
      { 3, MAP_ANONYMOUS, MAP_ANONYMOUS } },
    { "process_vm", SYS_process_vm_readv, EPERM },
    { "process_vm", SYS_process_vm_writev, EPERM },
    { "process_vm", SYS_ptrace, EPERM },
    { "process_vm", SYS_kcmp, EPERM },
    { "fork", SYS_fork, EAGAIN },
    { "fork", SYS_vfork, EAGAIN },
    { "fork", SYS_clone, EAGAIN, { 0, CLONE_THREAD, 0 } },
    // glibc then asks the older call, whose arguments can be looked at.
    { "fork", SYS_clone3, ENOSYS },
    // As a file system does that cannot.
    { "reserving", SYS_fallocate, EOPNOTSUPP },
    { "reserving", SYS_madvise, EINVAL, { 2, ~0u, 23 } }, // MADV_POPULATE_WRITE
    // An old system.
    { "new_calls", SYS_clone3, ENOSYS },
    { "new_calls", SYS_statx, ENOSYS },
    { "new_calls", SYS_getrandom, ENOSYS },
    { "new_calls", SYS_memfd_create, ENOSYS },
    { "new_calls", SYS_membarrier, ENOSYS },
    { "new_calls", SYS_copy_file_range, ENOSYS },
};

static unsigned at(const struct condition * condition) {
    return offsetof(struct seccomp_data, args) + 8 * condition->argument;
}

static void install(const struct refusal * it) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, it->call, 0, 6),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at(&it->first)),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, it->first.mask),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, it->first.bits, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at(&it->second)),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, it->second.mask),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, it->second.bits, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | it->error),
    };
    struct sock_fprog program = { sizeof code / sizeof *code, code };
    require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
    require(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "a system call filter");
}

static void refuse(const char * name) {
    for (size_t i = 0; i < sizeof REFUSALS / sizeof *REFUSALS; i++) {
        if (strcmp(name, REFUSALS[i].name) == 0) {
            install(&REFUSALS[i]);
        }
    }
}

static void preload(const char * library, bool before) {
    const char * others = getenv("LD_PRELOAD");
    char list[8192];
    if (!others || !*others) {
        snprintf(list, sizeof list, "%s", library);
    } else {
        snprintf(list, sizeof list, "%s:%s", before ? library : others, before ? others : library);
    }
    setenv("LD_PRELOAD", list, 1);
}

static void use_core(int number) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(number, &cores);
    require(sched_setaffinity(0, sizeof cores, &cores) == 0, "one core");
}

static void be_idle(void) {
    struct sched_param parameter = { 0 };
    require(sched_setscheduler(0, SCHED_IDLE, &parameter) == 0, "the idle policy");
}

static void make(char * name, char * value) {
    if (strcmp(name, "limit") == 0) {
        limit(value);
    } else if (strcmp(name, "full") == 0) {
        mount_full(value);
    } else if (strcmp(name, "readonly") == 0) {
        mount_empty(value, MS_RDONLY, NULL);
    } else if (strcmp(name, "noexec") == 0) {
        mount_empty(value, MS_NOEXEC, "mode=777");
    } else if (strcmp(name, "hidden") == 0) {
        mount_empty(value, 0, NULL);
    } else if (strcmp(name, "refuse") == 0) {
        refuse(value);
    } else if (strcmp(name, "mdwe") == 0) {
        require(prctl(SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) == 0, "memory-deny-write-execute");
    } else if (strcmp(name, "core") == 0) {
        use_core(atoi(value));
    } else if (strcmp(name, "nice") == 0) {
        require(setpriority(PRIO_PROCESS, 0, atoi(value)) == 0, "another priority");
    } else if (strcmp(name, "idle") == 0) {
        be_idle();
    } else if (strcmp(name, "close") == 0) {
        close(atoi(value));
    } else if (strcmp(name, "ignore") == 0) {
        signal(atoi(value), SIG_IGN);
    } else if (strcmp(name, "umask") == 0) {
        umask(strtol(value, NULL, 8));
    } else if (strcmp(name, "before") == 0 || strcmp(name, "behind") == 0) {
        preload(value, strcmp(name, "before") == 0);
    } else {
        fprintf(stderr, "no such condition: %s\n", name);
        exit(125);
    }
}

int main(int argc, char ** argv) {
    int word = 1;
    for (; word < argc && strcmp(argv[word], "--") != 0; word++) {
        char * value = strchr(argv[word], '=');
        if (value) {
            *value++ = 0;
        }
        make(argv[word], value ? value : "");
    }
    if (word + 1 >= argc) {
        return 125;
    }
    execvp(argv[word + 1], argv + word + 1);
    perror(argv[word + 1]);
    return 127;
}
