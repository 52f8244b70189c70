//! Parts of stand-ins: saving registers on the stack, and restoring them.

/// Keeps every register that an argument or the place of a result may be in, and where the call
/// returns to (`layout::caller_of`): 208 bytes on the stack.
macro_rules! keep_arguments {
    () => {
        "sub sp, sp, #208
         .cfi_adjust_cfa_offset 208
         stp x0, x1, [sp]
         stp x2, x3, [sp, #16]
         stp x4, x5, [sp, #32]
         stp x6, x7, [sp, #48]
         stp x8, x30, [sp, #64]
         .cfi_rel_offset x30, 72
         stp q0, q1, [sp, #80]
         stp q2, q3, [sp, #112]
         stp q4, q5, [sp, #144]
         stp q6, q7, [sp, #176]"
    };
}

/// Restores them.
macro_rules! restore_arguments {
    () => {
        "ldp x0, x1, [sp]
         ldp x2, x3, [sp, #16]
         ldp x4, x5, [sp, #32]
         ldp x6, x7, [sp, #48]
         ldp x8, x30, [sp, #64]
         .cfi_restore x30
         ldp q0, q1, [sp, #80]
         ldp q2, q3, [sp, #112]
         ldp q4, q5, [sp, #144]
         ldp q6, q7, [sp, #176]
         add sp, sp, #208
         .cfi_adjust_cfa_offset -208"
    };
}

/// Keeps every register that a called function may change, but for `x16`, `x17` and `x30`: 656 bytes
/// on the stack. Of vector registers the first 16 bytes: by the calling convention no caller expects more
/// to survive a call. A compiler that knows the called function could keep longer vectors (SVE) across
/// this one nevertheless; no build that does so is known, and none was tried.
macro_rules! keep_registers {
    () => {
        "sub sp, sp, #656
         .cfi_adjust_cfa_offset 656
         stp x0, x1, [sp]
         stp x2, x3, [sp, #16]
         stp x4, x5, [sp, #32]
         stp x6, x7, [sp, #48]
         stp x8, x9, [sp, #64]
         stp x10, x11, [sp, #80]
         stp x12, x13, [sp, #96]
         stp x14, x15, [sp, #112]
         mrs x16, nzcv
         str x16, [sp, #128]
         stp q0, q1, [sp, #144]
         stp q2, q3, [sp, #176]
         stp q4, q5, [sp, #208]
         stp q6, q7, [sp, #240]
         stp q8, q9, [sp, #272]
         stp q10, q11, [sp, #304]
         stp q12, q13, [sp, #336]
         stp q14, q15, [sp, #368]
         stp q16, q17, [sp, #400]
         stp q18, q19, [sp, #432]
         stp q20, q21, [sp, #464]
         stp q22, q23, [sp, #496]
         stp q24, q25, [sp, #528]
         stp q26, q27, [sp, #560]
         stp q28, q29, [sp, #592]
         stp q30, q31, [sp, #624]"
    };
}

/// Restores them.
macro_rules! restore_registers {
    () => {
        "ldr x16, [sp, #128]
         msr nzcv, x16
         ldp x0, x1, [sp]
         ldp x2, x3, [sp, #16]
         ldp x4, x5, [sp, #32]
         ldp x6, x7, [sp, #48]
         ldp x8, x9, [sp, #64]
         ldp x10, x11, [sp, #80]
         ldp x12, x13, [sp, #96]
         ldp x14, x15, [sp, #112]
         ldp q0, q1, [sp, #144]
         ldp q2, q3, [sp, #176]
         ldp q4, q5, [sp, #208]
         ldp q6, q7, [sp, #240]
         ldp q8, q9, [sp, #272]
         ldp q10, q11, [sp, #304]
         ldp q12, q13, [sp, #336]
         ldp q14, q15, [sp, #368]
         ldp q16, q17, [sp, #400]
         ldp q18, q19, [sp, #432]
         ldp q20, q21, [sp, #464]
         ldp q22, q23, [sp, #496]
         ldp q24, q25, [sp, #528]
         ldp q26, q27, [sp, #560]
         ldp q28, q29, [sp, #592]
         ldp q30, q31, [sp, #624]
         add sp, sp, #656
         .cfi_adjust_cfa_offset -656"
    };
}

/// Puts the address of this thread's memory into a register, by way of another one.
macro_rules! find_this_thread {
    ($at:literal, $by:literal) => {
        concat!(
            "adrp ",
            $by,
            ", :gottprel:ggprof_this_thread
             ldr ",
            $by,
            ", [",
            $by,
            ", :gottprel_lo12:ggprof_this_thread]
             mrs ",
            $at,
            ", tpidr_el0
             add ",
            $at,
            ", ",
            $at,
            ", ",
            $by
        )
    };
}

/// Puts a word of a table into `x16`.
macro_rules! load_word {
    () => {
        "adrp x16, {table} + {offset}
         ldr x16, [x16, :lo12:{table} + {offset}]"
    };
}

pub(crate) use {
    find_this_thread, keep_arguments, keep_registers, load_word, restore_arguments,
    restore_registers,
};
