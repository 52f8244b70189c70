//! The loader's own functions, `dlsym` among them: the symbols of these names are the agent's
//! (`hooks::opened`, `hooks::unloading`).
//!
//! The agent does not name the library that they are in on old systems, because on others it is empty,
//! and every process would load it in vain. Programs with ggml have mostly loaded it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use super::exports;
use crate::c_library::{LIBRARY_OF_LOADER, MODE_OF_LIBC, OPENS_FOR_LIBC};

/// Whether the agent's constructor has run, and so those of the C library and of sanitizers.
#[unsafe(link_section = ".data.asleep")]
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// To be called when the agent begins.
pub(crate) fn begin() {
    HAS_BEGUN.store(true, Ordering::Relaxed);
}

/// The function behind ours. Whoever asks may call the loader.
pub(crate) fn own(name: &CStr) -> Option<usize> {
    if !HAS_BEGUN.load(Ordering::Relaxed) {
        // SAFETY: there is one thread as long as what was loaded with the program is not ready.
        return unsafe { exports::behind_us_for_debuggers(name) };
    }
    exports::behind_us(name).or_else(|| {
        load_its_library();
        exports::behind_us(name)
    })
}

fn load_its_library() {
    type DlOpen = unsafe extern "C-unwind" fn(*const c_char, c_int) -> *mut c_void;
    let Some(open) = exports::first(OPENS_FOR_LIBC) else { return };
    // SAFETY: every glibc that has the function has it with these arguments.
    let open = unsafe { std::mem::transmute::<usize, DlOpen>(open) };
    // SAFETY: a C string; the library does nothing when it is loaded, and is never closed.
    unsafe { open(LIBRARY_OF_LOADER.as_ptr(), libc::RTLD_LAZY | MODE_OF_LIBC) };
}
