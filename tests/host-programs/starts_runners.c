// A launcher as Ollama is one: it serves and does not compute itself, starts a runner for each
// model, is told by a pipe when it is ready, and kills it to unload the model. argv[1] is the
// workload, argv[2] the directory of the libraries.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_model(char ** argv, const char * graphs) {
    int ready[2];
    if (pipe(ready) != 0) {
        return 1;
    }
    pid_t runner = fork();
    if (runner == 0) {
        dup2(ready[1], 1);
        close(ready[0]);
        execl(argv[1], argv[1], argv[2], "--threads", "1", "--graphs", graphs, "--announce", NULL);
        _exit(1);
    }
    close(ready[1]);
    FILE * words = fdopen(ready[0], "r");
    char line[256];
    int computed = 0;
    while (computed < 20 && fgets(line, sizeof line, words)) {
        computed += strncmp(line, "computed", 8) == 0;
    }
    kill(runner, SIGKILL);
    int status = 0;
    waitpid(runner, &status, 0);
    fclose(words);
    return computed == 20 && WIFSIGNALED(status) ? 0 : 1;
}

int main(int argc, char ** argv) {
    (void) argc;
    return run_model(argv, "1000000") || run_model(argv, "2000000");
}
