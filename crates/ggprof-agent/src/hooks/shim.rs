//! Standing in for a function whose arguments are not all known, or not all in
//! registers: every register an argument may be in is kept, our own function is
//! asked for the real one, and that is jumped to, as if nobody had been there.

/// The body of a naked function. `$setup` puts what `$observe` needs into the
/// registers of its arguments; the caller's stack is at `rsp + 0xb8`. It returns
/// the address of the real function.
macro_rules! observe_then_jump {
    ($observe:path, $slot:expr, $($setup:literal),*) => {
        std::arch::naked_asm!(
            "sub rsp, 0xb8",
            "mov [rsp], rdi",
            "mov [rsp + 8], rsi",
            "mov [rsp + 16], rdx",
            "mov [rsp + 24], rcx",
            "mov [rsp + 32], r8",
            "mov [rsp + 40], r9",
            "mov [rsp + 48], rax",
            "movups [rsp + 56], xmm0",
            "movups [rsp + 72], xmm1",
            "movups [rsp + 88], xmm2",
            "movups [rsp + 104], xmm3",
            "movups [rsp + 120], xmm4",
            "movups [rsp + 136], xmm5",
            "movups [rsp + 152], xmm6",
            "movups [rsp + 168], xmm7",
            $($setup,)*
            "call {observe}",
            "mov r11, rax",
            "mov rdi, [rsp]",
            "mov rsi, [rsp + 8]",
            "mov rdx, [rsp + 16]",
            "mov rcx, [rsp + 24]",
            "mov r8, [rsp + 32]",
            "mov r9, [rsp + 40]",
            "mov rax, [rsp + 48]",
            "movups xmm0, [rsp + 56]",
            "movups xmm1, [rsp + 72]",
            "movups xmm2, [rsp + 88]",
            "movups xmm3, [rsp + 104]",
            "movups xmm4, [rsp + 120]",
            "movups xmm5, [rsp + 136]",
            "movups xmm6, [rsp + 152]",
            "movups xmm7, [rsp + 168]",
            "add rsp, 0xb8",
            "jmp r11",
            slot = const $slot,
            observe = sym $observe,
        )
    };
}

pub(super) use observe_then_jump;
