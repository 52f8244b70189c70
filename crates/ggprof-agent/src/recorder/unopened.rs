//! More of the file without opening it: a program may let the system end it for calls that it does not make
//! itself (seccomp), opening a file among them. What is mapped already leads to the file, and is made longer
//! by a call that `realloc` makes as well.

use crate::ffi::in_place;
use crate::patch::page_bytes;

/// So many bytes of the file behind `end`, the end of a mapping of it. Whether the file has so many is not
/// known yet ([`is_in_file`]). `None` where the system cannot do it.
///
/// # Safety
/// The byte before `end` is in a shared mapping of a file.
pub(super) unsafe fn map_behind(end: *mut u8, bytes: usize) -> Option<*mut u8> {
    // Pages may be larger than our header, so a mapping need not end where a page does.
    let ahead = (end as usize - 1) % page_bytes() + 1;
    // SAFETY: a new mapping, from the last page that is mapped on: of a shared one, nothing is moved if
    // there are no bytes to move.
    let at = unsafe {
        let last_page = end.byte_sub(ahead).cast();
        libc::mremap(last_page, 0, ahead + bytes, libc::MREMAP_MAYMOVE)
    };
    // SAFETY: `ahead` is inside of the mapping.
    (at != libc::MAP_FAILED).then(|| unsafe { at.cast::<u8>().add(ahead) })
}

/// Gives back what [`map_behind`] gave.
///
/// # Safety
/// Nobody uses it any more.
pub(super) unsafe fn unmap(start: *mut u8, bytes: usize) {
    let ahead = (start as usize - 1) % page_bytes() + 1;
    // SAFETY: our own mapping, with what was mapped in front of it; the caller's contract.
    unsafe { libc::munmap(start.byte_sub(ahead).cast(), ahead + bytes) };
}

/// Whether the file has what is mapped here: it is longer than up to this address, which is one of a word.
pub(super) fn is_in_file(at: *const u8) -> bool {
    in_place::compare(at as usize, 0).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_file_that_is_closed_is_mapped_as_far_as_it_goes() {
        let page = page_bytes();
        let path = std::env::temp_dir().join(format!("ggprof-unopened-{}", std::process::id()));
        let bytes: Vec<u8> = (0..4 * page).map(|at| (at / page) as u8).collect();
        std::fs::write(&path, bytes).expect("it can be written");
        let file = File::options().read(true).write(true).open(&path).expect("it is there");
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping.
        let first = unsafe {
            libc::mmap(std::ptr::null_mut(), page, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(first, libc::MAP_FAILED);
        drop(file);
        for end in [page, page - 64] {
            // SAFETY: both are inside of the first page, or right behind it.
            let more = unsafe { map_behind(first.cast::<u8>().add(end), 6 * page) };
            let more = more.expect("the system can do it");
            let behind = page - end;
            for (at, is_there) in [(0, true), (3 * page - 4, true), (3 * page, false)] {
                // SAFETY: inside of the mapping; the file has it where this says so.
                let (known, byte) = unsafe {
                    let at = more.add(behind + at);
                    (is_in_file(at), is_there.then(|| *at))
                };
                assert_eq!(known, is_there, "{at}");
                assert_eq!(byte, is_there.then_some(1 + (at / page) as u8));
            }
            // SAFETY: nobody else has it.
            unsafe { unmap(more, 6 * page) };
        }
        std::fs::remove_file(&path).expect("it is ours");
    }
}
