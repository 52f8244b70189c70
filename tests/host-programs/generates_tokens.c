// Has llama.cpp and ggml linked into itself, or hidden in a library that it opens: generates
// tokens and prints their numbers. Arguments: the model, tokens, threads.
#include <stdio.h>
#include <stdlib.h>

#include "llama.h"

static void say_nothing(enum ggml_log_level level, const char * text, void * data) {
    (void) level, (void) text, (void) data;
}

static llama_token most_likely(struct llama_context * context, int32_t tokens) {
    const float * logits = llama_get_logits_ith(context, -1);
    llama_token best = 0;
    for (llama_token token = 1; token < tokens; token++) {
        if (logits[token] > logits[best]) {
            best = token;
        }
    }
    return best;
}

int main(int argc, char ** argv) {
    int wanted = argc > 2 ? atoi(argv[2]) : 8;
    llama_log_set(say_nothing, NULL);
    llama_backend_init();
    struct llama_model * model =
        llama_model_load_from_file(argv[1], llama_model_default_params());
    if (!model) {
        fprintf(stderr, "the model cannot be loaded\n");
        return 1;
    }
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = 256;
    params.n_threads = params.n_threads_batch = argc > 3 ? atoi(argv[3]) : 1;
    struct llama_context * context = llama_init_from_model(model, params);
    int32_t vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    llama_token prompt[] = { 1, 40, 41, 42, 43, 44, 45, 46 };
    struct llama_batch batch = llama_batch_get_one(prompt, sizeof prompt / sizeof *prompt);
    llama_token next;
    for (int i = 0; i < wanted; i++) {
        if (llama_decode(context, batch) != 0) {
            fprintf(stderr, "it cannot be computed\n");
            return 1;
        }
        next = most_likely(context, vocabulary);
        printf("%d ", next);
        batch = llama_batch_get_one(&next, 1);
    }
    printf("\n");
    llama_free(context);
    llama_model_free(model);
    llama_backend_free();
    return 0;
}
