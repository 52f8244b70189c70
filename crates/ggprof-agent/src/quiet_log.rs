//! One sentence on standard error when something goes wrong. It takes no allocation and no lock,
//! and there are never more than a handful: the terminal belongs to the program.

use std::sync::atomic::{AtomicU32, Ordering};

const MOST_SENTENCES: u32 = 5;
const LONGEST: usize = 400;

static SAID: AtomicU32 = AtomicU32::new(0);

/// Writes `ggprof: ` and the parts, cut to a line. Not inlined: every entry point has a use of it.
#[cold]
#[inline(never)]
pub(crate) fn say(parts: &[&[u8]]) {
    if SAID.fetch_add(1, Ordering::Relaxed) >= MOST_SENTENCES {
        return;
    }
    let mut line = [0_u8; LONGEST];
    let mut used = 0;
    for part in [b"ggprof: ".as_slice()].iter().chain(parts).chain(&[b"\n".as_slice()]) {
        let n = part.len().min(LONGEST - used);
        line[used..used + n].copy_from_slice(&part[..n]);
        used += n;
    }
    // By number, because at libc's function a thread may be cancelled (`observe::fail_open`).
    // SAFETY: `line` is valid for `used` bytes; a failed write is ignored, as
    // there is nowhere else to say it.
    unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO, line.as_ptr(), used) };
}
