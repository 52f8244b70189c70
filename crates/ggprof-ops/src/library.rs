//! Libraries that the user or a recording names.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// An open library, which is never closed: backends start threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Library(*mut c_void);

impl Library {
    /// Opens it. A backend's library finds the base library that is open already by its name; its own
    /// symbols stay its own, because variants of a backend have the same ones.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| format!("{} cannot be the path of a library", path.display()))?;
        // SAFETY: runs the library's constructors, which is what the user asked for; this process
        // exists for nothing else.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            // SAFETY: set by the call above that failed; the text is copied at once.
            let reason = unsafe { CStr::from_ptr(libc::dlerror()) };
            return Err(format!("it cannot be loaded: {}", reason.to_string_lossy()));
        }
        Ok(Self(library))
    }

    /// A function of this library, or of those that it depends on.
    ///
    /// # Safety
    ///
    /// `F` is the type of a function pointer with the signature that ggml's headers give this name.
    pub(crate) unsafe fn function<F: Copy>(self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) }
        // SAFETY: an open library, and a text that ends with a zero.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        // SAFETY: a pointer of the same size; that it has this type, the caller guarantees.
        (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
    }
}

/// A text of ggml's; `None` without one.
///
/// # Safety
///
/// Null, or a C string that stays.
pub(crate) unsafe fn text(at: *const std::ffi::c_char) -> Option<String> {
    // SAFETY: the caller's contract.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
}
