//! Whether a thread is on a stack that has room for a call.
//!
//! Memory is not told apart by what it is for: the stack of a coroutine, or one for signals, may lie in the
//! middle of anything. So a stack is taken for one only if it is the first thread's, which the kernel
//! names, or if it is where the C library puts the stack of a thread: right below what it keeps of it.

use super::maps::Mapping;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Room that a call needs below the thread's stack pointer.
const ROOM_BYTES: u64 = 192 << 10;

/// Where a thread is.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) is_first: bool,
    pub(super) stack: u64,
    /// Where the C library keeps what it knows of the thread.
    pub(super) notes: Range<u64>,
}

/// Whether there is room for a call below the stack pointer.
pub(super) fn has_room(maps: &[Mapping], memory: &File, place: Place) -> bool {
    let Some(around) = maps.iter().find(|mapping| mapping.memory.contains(&place.stack)) else {
        return false;
    };
    if around.path == Path::new("[stack]") {
        // It grows by itself.
        return place.is_first;
    }
    let is_threads = around.path != Path::new("[heap]")
        && place.stack < place.notes.start
        && around.memory.contains(&place.notes.start);
    let noted = || noted_start(around, memory, &place).unwrap_or(0);
    is_threads
        && place.stack - around.memory.start.max(noted()) >= ROOM_BYTES
        && is_readable(memory, place.stack - ROOM_BYTES)
}

/// Where a stack begins that the program made for the thread: it may be a part of more. C libraries note
/// the start of a thread's stack and, behind it, the length; only such two numbers fit around both places.
fn noted_start(around: &Mapping, memory: &File, place: &Place) -> Option<u64> {
    let Range { start: from, end } = place.notes;
    let until = around.memory.end.min(end);
    let mut notes = vec![0; (until - from) as usize];
    memory.read_exact_at(&mut notes, from).ok()?;
    let words: Vec<u64> = notes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(std::array::from_fn(|byte| word[byte])))
        .collect();
    let start = |pair: &[u64]| {
        let end = pair[0].checked_add(pair[1])?;
        let is_around = pair[0] <= place.stack && (from..=around.memory.end).contains(&end);
        is_around.then_some(pair[0])
    };
    words.windows(2).filter_map(start).max()
}

/// Newer C libraries guard the end of a stack in a way that the list of memory does not show.
fn is_readable(memory: &File, from: u64) -> bool {
    memory.read_exact_at(&mut vec![0; ROOM_BYTES as usize], from).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::maps;
    use super::*;
    use std::os::unix::thread::JoinHandleExt;
    use std::sync::mpsc;

    /// In the memory of this process, as a thread that is not the first.
    fn is_there_room(stack: u64, notes: u64) -> bool {
        let notes = notes..notes + 4096;
        let maps = maps::of(std::process::id()).unwrap();
        let memory = File::open("/proc/self/mem").unwrap();
        has_room(&maps, &memory, Place { is_first: false, stack, notes })
    }

    #[test]
    fn a_stack_is_the_threads_own() {
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let notes = told.recv().unwrap();
            let on_stack = 0_u64;
            let stack = (&raw const on_stack) as u64;
            assert!(is_there_room(stack, notes));
            assert!(!is_there_room(notes + 1, notes), "above its notes");
            let other = vec![0_u8; 4 << 20];
            let middle = other.as_ptr() as u64 + (2 << 20);
            assert!(!is_there_room(middle, notes), "memory for something else");
            assert!(!is_there_room(stack, middle), "another's notes");
        });
        // The C library's name of a thread is where its notes are.
        tell.send(thread.as_pthread_t()).unwrap();
        thread.join().unwrap();
    }
}
