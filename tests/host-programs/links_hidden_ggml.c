// Is linked to a library that hides a ggml of its own. Arguments: those of its `compute`.
int compute(int argc, char ** argv);

int main(int argc, char ** argv) {
    return compute(argc, argv);
}
