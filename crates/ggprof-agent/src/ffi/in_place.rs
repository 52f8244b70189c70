//! Looks at memory that may not be there, in the program. By a call that every program with threads makes,
//! also one that allows itself few others (seccomp): the system compares a word before it would move those
//! who wait there, of whom none are moved.

/// Whether the word is what is at the address, which is aligned for it. `None` where nothing can be read.
pub(crate) fn compare(at: usize, word: u32) -> Option<bool> {
    let compare = libc::FUTEX_CMP_REQUEUE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the system reads the word, or says that there is none; nobody is woken or moved.
    let done = unsafe { libc::syscall(libc::SYS_futex, at, compare, 0, 0_usize, at, word) };
    // SAFETY: this thread's own error number.
    match unsafe { *libc::__errno_location() } {
        _ if done >= 0 => Some(true),
        libc::EAGAIN => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_where_there_are_any() {
        let word = 0x1234_5678_u32;
        let at = &raw const word as usize;
        assert_eq!(compare(at, word), Some(true));
        assert_eq!(compare(at, word ^ 1), Some(false));
        assert_eq!(compare(4096, 0), None);
    }
}
