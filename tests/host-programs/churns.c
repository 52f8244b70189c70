// In each round a backend's library is opened, threads come, compute with it and go, a child
// becomes this program again and computes, another computes as it was forked, and the library is
// closed. Prints what was computed, which is always the same. Arguments: the directory of the
// libraries, the name of the backend's, and the number of rounds; 0 is a child.
#include "tiny_plugin.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, GRAPHS = 4, LENGTH = 64, LEAF = 7, FORKED = 17 };

static long compute_one(struct tiny_session * session, int number) {
    typedef void * (*node)(void *, int);
    typedef void (*move)(void *, void *, size_t, size_t);
    void * graph = tiny_build(session, 10, NULL);
    float numbers[LENGTH];
    for (int i = 0; i < LENGTH; i++) {
        numbers[i] = (float) (number + i);
    }
    void * input = TINY(void * (*)(void *), "ggml_get_first_tensor")(session->context);
    TINY(move, "ggml_backend_tensor_set")(input, numbers, 0, sizeof numbers);
    if (tiny_run(session, graph) != 0) {
        exit(92);
    }
    void * output = TINY(node, "ggml_graph_node")(graph, -1);
    TINY(move, "ggml_backend_tensor_get")(output, numbers, 0, sizeof numbers);
    return (long) numbers[LENGTH - 1];
}

static void * compute(void * library) {
    struct tiny_session session = tiny_start_on(library);
    long sum = 0;
    for (int i = 0; i < GRAPHS; i++) {
        sum += compute_one(&session, i);
    }
    tiny_end(&session);
    return (void *) sum;
}

static pid_t start_leaf(char ** argv) {
    pid_t child = fork();
    if (child == 0) {
        execl(argv[0], argv[0], argv[1], argv[2], "0", (char *) NULL);
        _exit(1);
    }
    return child;
}

static pid_t fork_and_compute(void * library) {
    pid_t child = fork();
    if (child == 0) {
        compute(library);
        _exit(FORKED);
    }
    return child;
}

static int code_of(pid_t child) {
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static long one_round(char ** argv) {
    void * library = tiny_open_library(argv[1], argv[2], RTLD_LOCAL);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, compute, library);
    }
    pid_t leaf = start_leaf(argv);
    long sum = 0;
    for (int i = 0; i < THREADS; i++) {
        void * part;
        pthread_join(threads[i], &part);
        sum += (long) part;
    }
    pid_t forked = fork_and_compute(library);
    printf("leaf=%d forked=%d\n", code_of(leaf), code_of(forked));
    fflush(stdout);
    dlclose(library);
    return sum;
}

int main(int argc, char ** argv) {
    if (argc < 4) {
        return 2;
    }
    int rounds = atoi(argv[3]);
    tiny_open_library(argv[1], "libggml-base.so", RTLD_GLOBAL);
    if (rounds == 0) {
        compute(tiny_open_library(argv[1], argv[2], RTLD_LOCAL));
        return LEAF;
    }
    long sum = 0;
    for (int i = 0; i < rounds; i++) {
        sum += one_round(argv);
    }
    printf("sum=%ld\n", sum);
    return 0;
}
