//! A live backend's function table, read and changed in place. Backends are
//! structs on ggml's heap, so their tables are writable and no one else's.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::api::Pointer;

/// One slot of a live backend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackendSlot(*mut usize);

impl BackendSlot {
    /// # Safety
    /// `backend` is live and of the copy of ggml in which the canary found a
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
