//! Memory of each thread. In a shared library, every use of `thread_local!` calls the loader for
//! the address, and an op has several uses. The agent is loaded with the program, so its
//! thread-local memory is at a fixed distance from the thread pointer, and four instructions find
//! it.

/// Reserves memory for a value in every thread, under a symbol of this library's own, and defines a
/// function that gives this thread's. It is zeroed when the thread begins.
macro_rules! thread_memory {
    ($symbol:literal, fn $name:ident() -> $type:ty) => {
        std::arch::global_asm!(
            ".pushsection .tbss,\"awT\",@nobits",
            ".p2align 6",
            concat!(".hidden ", $symbol),
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ", @object"),
            concat!(".size ", $symbol, ", {bytes}"),
            concat!($symbol, ":"),
            ".zero {bytes}",
            ".popsection",
            bytes = const size_of::<$type>(),
        );

        const _: () = assert!(align_of::<$type>() <= 64);

        #[inline(always)]
        fn $name() -> *const $type {
            let at: *const $type;
            // SAFETY: reads the linker's constant for the symbol above and adds the
            // thread pointer; touches no memory of ours and no flags.
            unsafe {
                std::arch::asm!(
                    concat!("adrp {distance}, :gottprel:", $symbol),
                    concat!("ldr {distance}, [{distance}, :gottprel_lo12:", $symbol, "]"),
                    "mrs {at}, tpidr_el0",
                    "add {at}, {at}, {distance}",
                    at = out(reg) at,
                    distance = out(reg) _,
                    options(pure, readonly, nostack, preserves_flags),
                );
            }
            at
        }
    };
}

pub(crate) use thread_memory;
