//! Drivers' libraries, which are there or not.

use std::ffi::{CStr, c_void};

/// A library that is never closed: drivers start threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Library(*mut c_void);

impl Library {
    pub(crate) fn open(name: &CStr) -> Option<Self> {
        // SAFETY: runs the library's constructors, which is what the user wants of a driver.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        (!library.is_null()).then_some(Self(library))
    }

    /// A function of the library.
    ///
    /// # Safety
    ///
    /// `F` is the type of a function pointer with the signature that the library documents for
    /// this name.
    pub(crate) unsafe fn function<F: Copy>(self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) }
        // SAFETY: an open library, and a text that ends with a zero.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        // SAFETY: a pointer of the same size; that it has this type, the caller guarantees.
        (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
    }
}
