//! A page of the agent's code near a library: a jump at a function's entry does not reach everywhere
//! (`JUMP_REACH`). The page is written first and then made executable, never both at once.

use std::ptr;

use super::loaded_object::LoadedObject;
use super::page_bytes;
use crate::arch::{self, JUMP_REACH};

/// Freed when dropped, unless it is to be kept: no thread may be in it or jump to it any more.
#[derive(Debug)]
pub(crate) struct NearPage {
    start: usize,
    used: usize,
    kept: bool,
}

impl NearPage {
    /// A page below the object if there is room, or above. Below first: behind a
    /// program lies its heap, which wants to grow.
    pub(crate) fn near(object: &LoadedObject) -> Option<NearPage> {
        let bounds = object.bounds()?;
        let code = object.code().cloned();
        let code = code.reduce(|all, next| all.start.min(next.start)..all.end.max(next.end))?;
        let step = 16 * page_bytes();
        let below = (1..)
            .map(|n| bounds.start.saturating_sub(n * step))
            .take_while(|at| *at >= step && code.end - at < JUMP_REACH);
        let above =
            (1..).map(|n| bounds.end + n * step).take_while(|at| at - code.start < JUMP_REACH);
        let mut places = below.chain(above);
        places.find_map(|at| Self::at(at & !(page_bytes() - 1)))
    }

    fn at(address: usize) -> Option<NearPage> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping that replaces nothing.
        let start =
            unsafe { libc::mmap(address as *mut libc::c_void, page_bytes(), access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let page = NearPage { start: start as usize, used: 0, kept: false };
        // Kernels before 4.17 take the address for a hint.
        (page.start == address).then_some(page)
    }

    /// Where the next code will be.
    pub(crate) fn next(&self) -> usize {
        self.start + self.used
    }

    /// Adds code in so much room, before the page is sealed. False when it is full.
    pub(crate) fn push(&mut self, code: &[u8], room: usize) -> bool {
        if code.len() > room || self.used + room > page_bytes() {
            return false;
        }
        // SAFETY: inside our own mapping, which is writable until `seal`.
        unsafe { ptr::copy_nonoverlapping(code.as_ptr(), self.next() as *mut u8, code.len()) };
        self.used += room.next_multiple_of(16);
        true
    }

    /// Makes the page executable, and not writable any more.
    pub(crate) fn seal(&self) -> bool {
        let access = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: our own mapping, which can be read before and after.
        unsafe {
            arch::publish_code(self.start..self.start + self.used);
            libc::mprotect(self.start as *mut libc::c_void, page_bytes(), access) == 0
        }
    }

    /// Keeps the page for good: code will jump to it as long as the process lives.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for NearPage {
    fn drop(&mut self) {
        // During a fault of the agent it is not known which code jumps here.
        if self.kept || std::thread::panicking() {
            return;
        }
        // SAFETY: our own mapping; the owner's contract says that it is not used any more.
        unsafe { libc::munmap(self.start as *mut libc::c_void, page_bytes()) };
    }
}
