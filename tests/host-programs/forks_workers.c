// A server that forks its workers once the model is loaded, as gunicorn does with --preload: the
// parent has computed, and so do four children, three graphs each. argv[2] says how they do it.
#include "tiny_ggml.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile bool done;

static void * compute_meanwhile(void * unused) {
    struct tiny_session session = tiny_start(1);
    while (!done) {
        tiny_compute(&session, 1);
    }
    return unused;
}

// What a worker does; the way it ends.
static int work(struct tiny_session * session, const char * how) {
    if (strcmp(how, "grandchildren") == 0) {
        // A worker that is not to be its parent's child.
        pid_t grandchild = fork();
        if (grandchild != 0) {
            int status = 0;
            waitpid(grandchild, &status, 0);
            _exit(WEXITSTATUS(status));
        }
    }
    if (strcmp(how, "own") == 0) {
        struct tiny_session own = tiny_start(1);
        tiny_compute(&own, 3);
    } else {
        tiny_compute(session, 3);
    }
    return 0;
}

int main(int argc, char ** argv) {
    const char * how = argc > 2 ? argv[2] : "";
    tiny_open(argv[1]);
    struct tiny_session session = tiny_start(1);
    tiny_compute(&session, 2);
    pthread_t other;
    bool busy = strcmp(how, "busy") == 0;
    if (busy && pthread_create(&other, NULL, compute_meanwhile, NULL) != 0) {
        return 1;
    }
    pid_t children[4];
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            int code = work(&session, how);
            if (i % 2) {
                _exit(code);
            }
            exit(code);
        }
    }
    int failed = 0;
    for (int i = 0; i < 4; i++) {
        int status = 0;
        waitpid(children[i], &status, 0);
        failed += status != 0;
    }
    tiny_compute(&session, 2);
    if (busy) {
        done = true;
        pthread_join(other, NULL);
    }
    return failed;
}
