//! Tells a forked child from the process that records, at every write. Asking for the process id is
//! a system call, which can take a microsecond (in a sandbox); a page that the kernel empties in
//! children takes one load.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::patch::page_bytes;

#[derive(Debug)]
pub(super) struct ForkMark {
    /// `None` where the kernel cannot do it.
    page: Option<NonNull<AtomicBool>>,
    pid: u32,
}

// SAFETY: the page is never unmapped, and an atomic.
unsafe impl Send for ForkMark {}
// SAFETY: as above.
unsafe impl Sync for ForkMark {}

impl ForkMark {
    /// Of this process.
    pub(super) fn new() -> ForkMark {
        let page = wiped_in_children();
        if let Some(page) = page {
            // SAFETY: mapped, zeroed, ours.
            unsafe { page.as_ref() }.store(true, Ordering::Relaxed);
        }
        ForkMark { page, pid: process() }
    }

    /// Whether this is a child with memory of its own. One that borrows its parent's
    /// (`vfork`) is not told from it, and computes nothing.
    pub(super) fn is_in_child(&self) -> bool {
        match self.page {
            // SAFETY: mapped for good, in children as well.
            Some(page) => !unsafe { page.as_ref() }.load(Ordering::Relaxed),
            None => !self.is_same_process(),
        }
    }

    /// The same by the process id, which a child does not share.
    pub(super) fn is_same_process(&self) -> bool {
        process() == self.pid
    }
}

/// By number: glibc before 2.25 remembers it, also in children that were made without its `fork`, such as those of
/// rehearsals.
fn process() -> u32 {
    // SAFETY: a system call without arguments.
    unsafe { libc::syscall(libc::SYS_getpid) as u32 }
}

fn wiped_in_children() -> Option<NonNull<AtomicBool>> {
    let bytes = page_bytes();
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh mapping, which touches nothing that exists.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page that was just mapped.
    if unsafe { libc::madvise(page, bytes, libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: the same, and no other code has its address.
        unsafe { libc::munmap(page, bytes) };
        return None;
    }
    NonNull::new(page.cast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_told_from_its_parent() {
        let mark = ForkMark::new();
        assert!(!mark.is_in_child() && mark.is_same_process());
        // SAFETY: the child only looks at the mark and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let told = mark.is_in_child() && !mark.is_same_process();
            // SAFETY: ends the child at once.
            unsafe { libc::syscall(libc::SYS_exit_group, if told { 7 } else { 8 }) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), 7);
    }
}
