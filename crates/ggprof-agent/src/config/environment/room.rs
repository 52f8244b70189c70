//! Where the environment is copied to: memory of the agent's own. Allocating would set up the heap, in
//! processes that may never need one.

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Several times as much as is set by `ggprof run`.
const BYTES: usize = 1536;

struct Room {
    is_taken: AtomicBool,
    bytes: UnsafeCell<[u8; BYTES]>,
}

// SAFETY: only the first caller of `filled` gets the bytes.
unsafe impl Sync for Room {}

#[unsafe(link_section = ".data.asleep")]
static ROOM: Room = Room { is_taken: AtomicBool::new(false), bytes: UnsafeCell::new([0; BYTES]) };

/// The texts with a zero behind each. `None` if they do not fit, or others are there already.
pub(super) fn filled<'v>(texts: impl Iterator<Item = &'v CStr>) -> Option<&'static [u8]> {
    if ROOM.is_taken.swap(true, Ordering::Relaxed) {
        return None;
    }
    // SAFETY: only the first caller comes here.
    let room = unsafe { &mut *ROOM.bytes.get() };
    let mut used = 0;
    for text in texts {
        let text = text.to_bytes_with_nul();
        room.get_mut(used..used + text.len())?.copy_from_slice(text);
        used += text.len();
    }
    room.get(..used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_one() {
        assert_eq!(filled([c"A=1", c"B="].into_iter()), Some(&b"A=1\0B=\0"[..]));
        assert_eq!(filled([c"A=1"].into_iter()), None);
    }
}
