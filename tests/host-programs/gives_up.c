// Gives up as ggml's macro for assertions does, if it is told to, and computes nothing.

void ggml_abort(const char * file, int line, const char * words, ...);

int main(int argc, char ** argv) {
    (void) argv;
    if (argc > 1) {
        ggml_abort(__FILE__, __LINE__, "GGML_ASSERT(%s) failed", "argc == 1");
    }
    return 0;
}
