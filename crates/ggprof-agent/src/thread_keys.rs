//! The functions for values of threads, for this library alone: found when they are needed. Before glibc
//! 2.34 they are in libpthread. If the agent named that library, every process would have to load it, and
//! on newer systems it is empty. Programs with ggml have loaded it, because ggml makes threads.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::arch;
use crate::patch::exports;

/// Those that the agent and Rust's library call.
const NAMES: [&CStr; 3] = [c"pthread_key_create", c"pthread_setspecific", c"pthread_key_delete"];

static FOUND: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

arch::hidden_names! {
    forward:
    "pthread_key_create" 0
    "pthread_setspecific" 1
    "pthread_key_delete" 2
}

arch::stand_in! {
    fn forward<NUMBER>, asks function(NUMBER)
}

extern "C-unwind" fn function(number: u32) -> usize {
    let place = &FOUND[number as usize];
    if place.load(Ordering::Relaxed) == 0 {
        place.store(exports::first(NAMES[number as usize]).unwrap_or(0), Ordering::Relaxed);
    }
    match place.load(Ordering::Relaxed) {
        0 => refuse as *const () as usize,
        found => found,
    }
}

/// In a process without threads.
extern "C-unwind" fn refuse() -> c_int {
    libc::ENOSYS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::loaded_object::is_ours;
    use std::ffi::c_void;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_value_of_a_thread_is_given_back_at_its_end() {
        static GIVEN_BACK: AtomicBool = AtomicBool::new(false);
        extern "C" fn give_back(value: *mut c_void) {
            GIVEN_BACK.store(value as usize == 7, Ordering::Relaxed);
        }
        assert!(is_ours(libc::pthread_key_create as *const () as usize));
        let mut key = 0;
        // SAFETY: `key` is ours, and no value of it is left when it is deleted.
        unsafe {
            assert_eq!(libc::pthread_key_create(&mut key, Some(give_back)), 0);
            let set = move || libc::pthread_setspecific(key, 7 as *const c_void);
            assert_eq!(std::thread::spawn(set).join().unwrap(), 0);
            assert!(GIVEN_BACK.load(Ordering::Relaxed));
            assert_eq!(libc::pthread_key_delete(key), 0);
        }
    }
}
