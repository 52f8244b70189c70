//! Asking the loader for symbols, as one of the loaded objects sees them.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::loaded_object::{self, LoadedObject, is_gone};
use super::loader;
use crate::{c_library, lock};

/// A loaded object's view of symbols: itself, then what it links to.
///
/// To open, ask and close one takes the loader's lock, and a thread inside a library's
/// constructor holds that: it must never wait for a lock of ours that is held meanwhile. (A walk
/// through what is loaded takes another lock, which nobody holds for long.)
pub(crate) struct Scope(*mut c_void);

impl Scope {
    /// By the loader's own name for the object, which it compares first. The
    /// program itself has an empty name and sees all that is linked globally.
    pub(crate) fn of(name: &CStr) -> Option<Scope> {
        lock::before_asking_the_loader();
        let path = if name.is_empty() { std::ptr::null() } else { name.as_ptr() };
        // SAFETY: the name is a C string; NOLOAD never loads or runs anything.
        let handle = unsafe { libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        c_library::forget_loader_error(handle.is_null());
        (!handle.is_null()).then(|| Scope(handle))
    }

    /// The symbol's address, 0 when it is not there.
    pub(crate) fn find(&self, symbol: &CStr) -> usize {
        lock::before_asking_the_loader();
        // SAFETY: the handle is open until drop, the name a C string.
        let found = unsafe { libc::dlsym(self.0, symbol.as_ptr()) as usize };
        c_library::forget_loader_error(found == 0);
        found
    }
}

/// Everything that is loaded now and can be named, each kept loaded as long as its scope is: the program may
/// close it at any moment.
pub(crate) fn all_held() -> Vec<(LoadedObject, Scope)> {
    let all = loaded_object::all().into_iter();
    let held = all.filter_map(|object| Scope::of(&object.name).map(|scope| (object, scope)));
    // Before it was held, another one of its name may have come to another place.
    held.filter(|(object, _)| !is_gone(&object.place())).collect()
}

impl Drop for Scope {
    fn drop(&mut self) {
        // SAFETY: opened in `of`; the object has its other references still.
        unsafe { close(self.0) };
    }
}

/// libc's `dlclose`: the symbol of that name is ours (`hooks::unloading`).
///
/// # Safety
/// As for libc's.
pub(crate) unsafe fn close(handle: *mut c_void) -> c_int {
    lock::before_asking_the_loader();
    static REAL: AtomicUsize = AtomicUsize::new(0);
    if REAL.load(Ordering::Relaxed) == 0 {
        REAL.store(loader::own(c"dlclose").unwrap_or(0), Ordering::Relaxed);
    }
    type CloseLibrary = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;
    // SAFETY: libc's function of this name has this signature.
    let real =
        unsafe { std::mem::transmute::<usize, Option<CloseLibrary>>(REAL.load(Ordering::Relaxed)) };
    // SAFETY: the caller's contract.
    real.map_or(-1, |close| unsafe { close(handle) })
}
