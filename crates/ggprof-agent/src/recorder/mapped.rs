//! Memory straight from the system, zeroed and never released: for tables that other threads may
//! read at any moment, so that no growth and no reuse may move them.

use std::ptr::NonNull;

/// A fixed array of `T` in fresh pages. Untouched pages cost nothing.
pub(crate) fn array<T>(length: usize) -> Option<NonNull<T>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let bytes = length * size_of::<T>();
    // SAFETY: asks for new anonymous pages; no existing mapping is touched.
    let at = unsafe {
        libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if at == libc::MAP_FAILED { None } else { NonNull::new(at.cast()) }
}
