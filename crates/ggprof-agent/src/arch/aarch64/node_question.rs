//! The stand-in that sees which node a device's library asks about, and from where.

/// Defines a stand-in for the function that answers a question about a node. It knows where the
/// call comes from, which Rust code cannot find out. If the visits say so, it stores the node
/// itself, because there are as many calls as nodes.
macro_rules! node_question {
    (
        $(#[$attribute:meta])*
        fn $name:ident; real: $real:path, visit: $visit:path;
        in this thread: visits $visits:expr;
        in these: timed $timed:expr, as_whole $as_whole:expr, site $site:expr, asked $asked:expr;
    ) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name<const N: usize>() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                $crate::arch::aarch64::registers::find_this_thread!("x16", "x17"),
                "ldr x16, [x16, {visits}]",
                "cbz x16, 3f",
                "ldrb w17, [x16, {timed}]",
                "sub w17, w17, {as_whole}",
                "cbnz w17, 2f",
                "ldr x17, [x16, {site}]",
                "sub x17, x17, x30",
                "cbnz x17, 2f",
                "str x0, [x16, {asked}]",
                "3:",
                $crate::arch::aarch64::registers::load_word!(),
                "br x16",
                "2:",
                $crate::arch::aarch64::registers::keep_arguments!(),
                "mov x1, x30",
                "mov x2, x16",
                "bl {visit}",
                $crate::arch::aarch64::registers::restore_arguments!(),
                "b 3b",
                ".cfi_endproc",
                visits = const $visits,
                timed = const $timed,
                as_whole = const $as_whole,
                site = const $site,
                asked = const $asked,
                table = sym $real,
                offset = const N * size_of::<usize>(),
                visit = sym $visit,
            )
        }
    };
}

pub(crate) use node_question;
