// A library that brings unrest into a program: preloaded, it does from a thread of its own what
// CHAOS_UNREST names, until the program ends.
//
//   threads            short threads come and go
//   forks              children are forked and end at once
//   execs              children become /bin/true
//   opens=LIBRARY      a library is opened and closed
//   handles=SIGNAL     the signal has a handler that restarts what it interrupted
//   timer=MICROSECONDS SIGPROF comes that often, by processor time
//
// CHAOS_UNREST_EVERY is the pause between, in microseconds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

static void handle(int number) {
    (void) number;
    handled++;
}

static void handle_signal(int number) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, NULL);
}

static void start_timer(int microseconds) {
    handle_signal(SIGPROF);
    struct itimerval interval = { { 0, microseconds }, { 0, microseconds } };
    setitimer(ITIMER_PROF, &interval, NULL);
}

static void * nothing(void * unused) {
    return unused;
}

// With a small stack: where memory is short, the program's own threads must still find room for theirs.
static int create(pthread_t * thread, void * (*work)(void *), void * argument) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    int failed = pthread_create(thread, &small, work, argument);
    pthread_attr_destroy(&small);
    return failed;
}

static void a_thread(void) {
    pthread_t thread;
    if (create(&thread, nothing, NULL) == 0) {
        pthread_join(thread, NULL);
    }
}

// Without what brings us into it: otherwise it would have children, too, without end.
static char ** quiet_environment(void) {
    size_t count = 0;
    while (environ[count]) {
        count++;
    }
    char ** others = calloc(count + 1, sizeof *others);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environ[i], "CHAOS_UNREST", 12) != 0) {
            others[kept++] = environ[i];
        }
    }
    return others;
}

static char ** environment_of_children;

static void a_child(int becomes_another) {
    pid_t child = fork();
    if (child == 0) {
        if (becomes_another) {
            char * const words[] = { "true", NULL };
            execve("/bin/true", words, environment_of_children);
        }
        _exit(0);
    }
    if (child > 0) {
        waitpid(child, NULL, 0);
    }
}

static void a_library(const char * path) {
    void * library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library) {
        dlsym(library, "ggml_backend_init");
        dlclose(library);
    }
}

static void * disturb(void * what) {
    const char * every = getenv("CHAOS_UNREST_EVERY");
    useconds_t pause = every ? atoi(every) : 1000;
    for (;;) {
        if (strcmp(what, "threads") == 0) {
            a_thread();
        } else if (strcmp(what, "forks") == 0) {
            a_child(0);
        } else if (strcmp(what, "execs") == 0) {
            a_child(1);
        } else {
            a_library((const char *) what + strlen("opens="));
        }
        usleep(pause);
    }
    return NULL;
}

static void begin(char * what) {
    if (strncmp(what, "handles=", 8) == 0) {
        handle_signal(atoi(what + 8));
        return;
    }
    if (strncmp(what, "timer=", 6) == 0) {
        start_timer(atoi(what + 6));
        return;
    }
    // The program's signals are the program's threads' to handle.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    create(&thread, disturb, what);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

__attribute__((constructor)) static void start(void) {
    environment_of_children = quiet_environment();
    const char * list = getenv("CHAOS_UNREST");
    char * words = list ? strdup(list) : NULL;
    for (char * word = words ? strtok(words, " ") : NULL; word; word = strtok(NULL, " ")) {
        begin(word);
    }
}
