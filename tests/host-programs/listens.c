// Listens to two seconds of a tone with the whisper.cpp that it is linked with, and prints what that makes of
// them, as applications/old_whisper.py does. It opens no library, so it needs nothing to do so: before glibc
// 2.34 that is a library of its own. Arguments: model, decoded tokens, threads.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 32000, BEGIN = 50257 };

void * whisper_init_from_file(const char * model);
int whisper_pcm_to_mel(void * context, const float * samples, int count, int threads);
int whisper_encode(void * context, int offset, int threads);
int whisper_decode(void * context, const int * tokens, int count, int past, int threads);
float * whisper_get_logits(void * context);
int whisper_n_vocab(void * context);
void whisper_free(void * context);

int main(int argc, char ** argv) {
    if (argc != 4) {
        return 2;
    }
    int tokens = atoi(argv[2]), threads = atoi(argv[3]);
    void * context = whisper_init_from_file(argv[1]);
    static float tone[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        tone[i] = sinf((float) i / 20);
    }
    if (!context || whisper_pcm_to_mel(context, tone, SAMPLES, threads) != 0 || whisper_encode(context, 0, threads) != 0) {
        return 1;
    }
    const int begin = BEGIN;
    for (int past = 0; past < tokens; past++) {
        if (whisper_decode(context, &begin, 1, past, threads) != 0) {
            return 1;
        }
        double sum = 0;
        for (int i = 0; i < whisper_n_vocab(context); i++) {
            sum += whisper_get_logits(context)[i];
        }
        printf("%.6g\n", sum);
    }
    whisper_free(context);
    return 0;
}
