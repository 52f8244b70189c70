//! A live backend's function table, read and changed in place. Backends are structs on ggml's heap,
//! so their tables are writable and not shared.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::api::Pointer;
use crate::arch::Word;

/// The registers after the known arguments, in case there are more arguments.
pub(crate) type More = [Word; 4];
pub(crate) type GraphCompute =
    unsafe extern "C-unwind" fn(Pointer, Pointer, Word, Word, Word, Word) -> c_int;
pub(crate) type Synchronize = unsafe extern "C-unwind" fn(Pointer);
pub(crate) type Free = unsafe extern "C-unwind" fn(Pointer);
pub(crate) type CpyTensorAsync =
    unsafe extern "C-unwind" fn(Pointer, Pointer, Pointer, Pointer, Word, Word) -> bool;

/// One slot of a live backend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackendSlot(*mut usize);

impl BackendSlot {
    /// # Safety
    /// `backend` is live and of the copy of ggml in which `probe` found a
    /// slot at `offset`.
    pub(crate) unsafe fn at(backend: Pointer, offset: usize) -> Option<BackendSlot> {
        // SAFETY: the slot lies inside the backend by the caller's contract.
        (offset != 0).then(|| BackendSlot(unsafe { backend.cast::<u8>().add(offset).cast() }))
    }

    pub(crate) fn get(self) -> usize {
        self.word().load(Ordering::Acquire)
    }

    pub(crate) fn set(self, function: usize) {
        self.word().store(function, Ordering::Release);
    }

    fn word(&self) -> &AtomicUsize {
        // SAFETY: `at`'s contract: a function pointer of a live backend.
        unsafe { AtomicUsize::from_ptr(self.0) }
    }
}

/// The function that stood in the slot.
///
/// # Safety
/// `F` is the slot's function pointer type.
pub(crate) unsafe fn original<F: Copy>(kept: &AtomicUsize) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let address = kept.load(Ordering::Acquire);
    // SAFETY: a function pointer of type `F` by the caller's contract, not null.
    (address != 0).then(|| unsafe { std::mem::transmute_copy(&address) })
}
