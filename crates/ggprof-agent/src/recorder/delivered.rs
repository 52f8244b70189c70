//! How much of a recording was already written for `GGML_PROFILE`; `delivery` uses it.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use crate::lock::Tried;

/// What was delivered of a recording until now.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) busy: Tried<()>,
    /// How many graph runs there were at the last delivery.
    pub(crate) runs: AtomicU32,
    /// The last delivery failed.
    pub(crate) went_wrong: AtomicBool,
    pub(crate) finished_ns: AtomicU64,
    pub(crate) took_ns: AtomicU64,
}
