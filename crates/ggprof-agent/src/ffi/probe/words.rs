//! The bytes of an object at this moment.

use std::ops::Range;

use crate::ffi::api::Pointer;

pub(super) struct Words(Vec<u64>);

impl Words {
    /// # Safety
    /// So many bytes can be read there.
    pub(super) unsafe fn at(object: Pointer, bytes: usize) -> Words {
        let at = object.cast::<u64>();
        // SAFETY: the caller's contract.
        Words((0..bytes / 8).map(|i| unsafe { at.add(i).read_unaligned() }).collect())
    }

    /// Offsets of all 64-bit words.
    pub(super) fn offsets(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.0.len()).map(|i| i * 8)
    }

    /// Offsets of all 32-bit words.
    pub(super) fn halves(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.0.len() * 2).map(|i| i * 4)
    }

    pub(super) fn u64_at(&self, offset: usize) -> u64 {
        self.0.get(offset / 8).copied().unwrap_or(u64::MAX)
    }

    pub(super) fn u32_at(&self, offset: usize) -> u32 {
        (self.u64_at(offset) >> (offset % 8 * 8)) as u32
    }

    pub(super) fn find_run(&self, run: &[u64]) -> Option<usize> {
        self.0.windows(run.len()).position(|window| window == run).map(|i| i * 8)
    }

    /// Where the longest row of this byte is.
    pub(super) fn longest_row_of(&self, byte: u8) -> Range<usize> {
        let bytes: Vec<u8> = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut longest = 0..0;
        let mut start = 0;
        for (at, &now) in bytes.iter().enumerate() {
            if now != byte {
                start = at + 1;
            } else if at + 1 - start > longest.len() {
                longest = start..at + 1;
            }
        }
        longest
    }
}

/// The single match; `None` if there are several.
pub(super) fn only<T>(all: impl IntoIterator<Item = T>) -> Option<T> {
    let mut all = all.into_iter();
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

/// Words that may lie anywhere; `None` where there is no memory. In a child.
pub(super) fn read_anywhere<const N: usize>(at: u64) -> Option<[u64; N]> {
    let mut words = [0_u64; N];
    let bytes = size_of_val(&words);
    let here = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: bytes };
    let there = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: bytes };
    // SAFETY: the kernel copies into `words`, or says that there is nothing to copy. By system call, because
    // glibc before 2.25 remembers its process in a rehearsal's child as well.
    let copied = unsafe {
        let this_process = libc::syscall(libc::SYS_getpid) as libc::pid_t;
        libc::process_vm_readv(this_process, &here, 1, &there, 1, 0)
    };
    let problem = || std::io::Error::last_os_error().raw_os_error();
    let copied = match copied {
        // Some containers and emulators do not allow or know this call.
        -1 if matches!(problem(), Some(libc::ENOSYS | libc::EPERM)) => through_pipe(&here, at),
        copied => copied,
    };
    (copied == bytes as isize).then_some(words)
}

/// The same by calls that are allowed everywhere, for fewer bytes than a pipe holds.
fn through_pipe(here: &libc::iovec, at: u64) -> isize {
    let mut ends = [0; 2];
    // SAFETY: the kernel reads and writes the memory that it is given, or refuses; both ends are ours.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) != 0 {
            return -1;
        }
        let written = libc::write(ends[1], at as *const libc::c_void, here.iov_len);
        let copied =
            if written < 0 { -1 } else { libc::read(ends[0], here.iov_base, here.iov_len) };
        libc::close(ends[0]);
        libc::close(ends[1]);
        copied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_where_they_are() {
        let mut object = [1_u64, 7, 11, 0, u64::from_le_bytes(*b"axxxxxxx")];
        // SAFETY: an array of ours.
        let words = unsafe { Words::at(object.as_mut_ptr().cast(), size_of_val(&object)) };
        assert_eq!(words.find_run(&[7, 11]), Some(8));
        assert_eq!(words.find_run(&[11, 7]), None);
        assert_eq!(words.longest_row_of(b'x'), 33..40);
        assert_eq!((words.u32_at(16), words.u32_at(20)), (11, 0));
        let at = object.as_ptr() as u64;
        assert_eq!(read_anywhere::<2>(at), Some([1, 7]));
        assert_eq!(read_anywhere::<1>(8), None);
    }
}
