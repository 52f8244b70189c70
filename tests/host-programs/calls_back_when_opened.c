// A library whose constructor calls the program that opens it.
void when_opened(void);

__attribute__((constructor)) static void opened(void) {
    when_opened();
}
