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
                "mov rax, qword ptr [rip + ggprof_this_thread@GOTTPOFF]",
                "mov rax, qword ptr fs:[rax + {visits}]",
                "test rax, rax",
                "jz 3f",
                "cmp byte ptr [rax + {timed}], {as_whole}",
                "jne 2f",
                "mov r11, [rsp]",
                "cmp r11, [rax + {site}]",
                "jne 2f",
                "mov [rax + {asked}], rdi",
                "3:",
                "jmp qword ptr [rip + {real} + {place}]",
                "2:",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                $crate::arch::x86_64::registers::keep_arguments!(),
                "mov rsi, [rsp + 200]",
                "mov rdx, rax",
                "call {visit}",
                $crate::arch::x86_64::registers::restore_arguments!(),
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "jmp 3b",
                ".cfi_endproc",
                visits = const $visits,
                timed = const $timed,
                as_whole = const $as_whole,
                site = const $site,
                asked = const $asked,
                real = sym $real,
                place = const N * size_of::<usize>(),
                visit = sym $visit,
            )
        }
    };
}

pub(crate) use node_question;
