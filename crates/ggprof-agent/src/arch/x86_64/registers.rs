//! Parts of stand-ins: saving registers on the stack, and restoring them.

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

/// Restores them.
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

/// Calls a function from a stand-in that has pushed one register, with the caller's first eight words
/// on the stack, because there may be arguments among them. The caller is a loop over nodes, which
/// has more local variables than that, so these words can be read.
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

/// Keeps `rax` and `rdx`, and puts the cycle counter into `rax`.
macro_rules! count_cycles {
    () => {
        "push rax
         .cfi_adjust_cfa_offset 8
         push rdx
         .cfi_adjust_cfa_offset 8
         rdtsc
         shl rdx, 32
         or rax, rdx"
    };
}

/// Gives them back.
macro_rules! restore_counted {
    () => {
        "pop rdx
         .cfi_adjust_cfa_offset -8
         pop rax
         .cfi_adjust_cfa_offset -8"
    };
}

pub(crate) use {
    call_with_stack, count_cycles, keep_arguments, keep_registers, restore_arguments,
    restore_counted, restore_registers,
};
