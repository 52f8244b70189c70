//! Memory of each thread. In a shared library, every use of `thread_local!` calls the loader for
//! the address, and an op has several uses. The agent is loaded with the program, so its
//! thread-local memory is at a fixed distance from the thread pointer, and two instructions find
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
            // thread pointer; touches no memory of ours and no flags that matter.
            unsafe {
                std::arch::asm!(
                    concat!("mov {at}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                    "add {at}, qword ptr fs:[0]",
                    at = out(reg) at,
                    options(pure, readonly, nostack),
                );
            }
            at
        }
    };
}

pub(crate) use thread_memory;
