//! Standing in for a function whose arguments are not all known, or not all in
//! registers: every register an argument may be in is kept, our own function is
//! asked for the real one, and that is jumped to, as if nobody had been there.

/// The body of a naked function. `$setup` puts what `$observe` needs into the
/// registers of its arguments; the caller's stack is at `rsp + 0xb8`. It returns
/// the address of the real function, or returns nothing where that stands in the
/// table `$real`, in the place `$slot`.
macro_rules! observe_then_jump {
    ($observe:path, $slot:expr, $($setup:literal),*) => {
        $crate::arch::observe_then_jump!(
            @ $observe, ["mov r11, rax"], [$($setup),*], slot = const $slot
        )
    };
    ($observe:path, [$real:path][$slot:expr]) => {
        $crate::arch::observe_then_jump!(
            @ $observe, ["mov r11, qword ptr [rip + {real} + {offset}]"], [],
            real = sym $real, offset = const $slot * size_of::<usize>()
        )
    };
    (@ $observe:path, [$jump_to:literal], [$($setup:literal),*], $($operand:tt)*) => {
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
            $jump_to,
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
            observe = sym $observe,
            $($operand)*
        )
    };
}

/// Keeps every register that a called function may change, 336 bytes on the stack. Of vector
/// registers the lower half: code for any x86-64 processor does not touch the upper one.
macro_rules! keep_registers {
    () => {
        "sub rsp, 336
         .cfi_adjust_cfa_offset 336
         movups [rsp], xmm0
         movups [rsp + 16], xmm1
         movups [rsp + 32], xmm2
         movups [rsp + 48], xmm3
         movups [rsp + 64], xmm4
         movups [rsp + 80], xmm5
         movups [rsp + 96], xmm6
         movups [rsp + 112], xmm7
         movups [rsp + 128], xmm8
         movups [rsp + 144], xmm9
         movups [rsp + 160], xmm10
         movups [rsp + 176], xmm11
         movups [rsp + 192], xmm12
         movups [rsp + 208], xmm13
         movups [rsp + 224], xmm14
         movups [rsp + 240], xmm15
         mov [rsp + 256], rax
         mov [rsp + 264], rcx
         mov [rsp + 272], rdx
         mov [rsp + 280], rsi
         mov [rsp + 288], rdi
         mov [rsp + 296], r8
         mov [rsp + 304], r9
         mov [rsp + 312], r10
         mov [rsp + 320], r11"
    };
}

/// Gives them back.
macro_rules! restore_registers {
    () => {
        "movups xmm0, [rsp]
         movups xmm1, [rsp + 16]
         movups xmm2, [rsp + 32]
         movups xmm3, [rsp + 48]
         movups xmm4, [rsp + 64]
         movups xmm5, [rsp + 80]
         movups xmm6, [rsp + 96]
         movups xmm7, [rsp + 112]
         movups xmm8, [rsp + 128]
         movups xmm9, [rsp + 144]
         movups xmm10, [rsp + 160]
         movups xmm11, [rsp + 176]
         movups xmm12, [rsp + 192]
         movups xmm13, [rsp + 208]
         movups xmm14, [rsp + 224]
         movups xmm15, [rsp + 240]
         mov rax, [rsp + 256]
         mov rcx, [rsp + 264]
         mov rdx, [rsp + 272]
         mov rsi, [rsp + 280]
         mov rdi, [rsp + 288]
         mov r8, [rsp + 296]
         mov r9, [rsp + 304]
         mov r10, [rsp + 312]
         mov r11, [rsp + 320]
         add rsp, 336
         .cfi_adjust_cfa_offset -336"
    };
}

/// Calls a function from a shim that has pushed one register, with the caller's first eight words
/// on the stack, should there be arguments among them. The caller is a loop over nodes, whose own
/// variables are more than that.
macro_rules! call_with_stack {
    ($function:literal) => {
        concat!(
            "push qword ptr [rsp + 72]
             push qword ptr [rsp + 72]
             push qword ptr [rsp + 72]
             push qword ptr [rsp + 72]
             push qword ptr [rsp + 72]
             push qword ptr [rsp + 72]
             push qword ptr [rsp + 72]
             push qword ptr [rsp + 72]
             .cfi_adjust_cfa_offset 64
             call qword ptr ",
            $function,
            "
             add rsp, 64
             .cfi_adjust_cfa_offset -64"
        )
    };
}

/// Keeps every register that an argument may be in, 192 bytes on the stack.
macro_rules! keep_arguments {
    () => {
        "sub rsp, 192
         .cfi_adjust_cfa_offset 192
         movups [rsp], xmm0
         movups [rsp + 16], xmm1
         movups [rsp + 32], xmm2
         movups [rsp + 48], xmm3
         movups [rsp + 64], xmm4
         movups [rsp + 80], xmm5
         movups [rsp + 96], xmm6
         movups [rsp + 112], xmm7
         mov [rsp + 128], rdi
         mov [rsp + 136], rsi
         mov [rsp + 144], rdx
         mov [rsp + 152], rcx
         mov [rsp + 160], r8
         mov [rsp + 168], r9
         mov [rsp + 176], rax"
    };
}

/// Gives them back.
macro_rules! restore_arguments {
    () => {
        "movups xmm0, [rsp]
         movups xmm1, [rsp + 16]
         movups xmm2, [rsp + 32]
         movups xmm3, [rsp + 48]
         movups xmm4, [rsp + 64]
         movups xmm5, [rsp + 80]
         movups xmm6, [rsp + 96]
         movups xmm7, [rsp + 112]
         mov rdi, [rsp + 128]
         mov rsi, [rsp + 136]
         mov rdx, [rsp + 144]
         mov rcx, [rsp + 152]
         mov r8, [rsp + 160]
         mov r9, [rsp + 168]
         mov rax, [rsp + 176]
         add rsp, 192
         .cfi_adjust_cfa_offset -192"
    };
}

pub(crate) use {
    call_with_stack, keep_arguments, keep_registers, observe_then_jump, restore_arguments,
    restore_registers,
};
