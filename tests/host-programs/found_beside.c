// For `opens_beside_itself.c`.
int answer(void) {
    return 42;
}
