//! How long CUDA graphs are while every kernel is traced. CUPTI takes two microseconds for
//! each node of a graph that is launched, before the device begins. With shorter graphs it
//! does so while the device works on the one before, and a model of a billion weights keeps
//! 0.80 of its speed instead of 0.69 (docs/overhead.md). ggml has a setting for it.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

const VARIABLE: &CStr = c"GGML_CUDA_GRAPH_CHUNK_SIZE";
/// As nobody else writes it: a program that this one starts finds it and knows it for ours.
const NODES: &CStr = c"064";
/// For the recording: what the program's user did not ask for is told.
const TOLD: &str = "GGML_CUDA_GRAPH_CHUNK_SIZE=64";

static SHORTENED: AtomicBool = AtomicBool::new(false);

/// Unless the user has a wish. Before `main`: nobody reads the environment yet.
pub(crate) fn shorten() {
    // SAFETY: all are C strings, that of the environment as long as nobody changes it; the
    // program's threads do not run yet.
    let ours = unsafe {
        libc::setenv(VARIABLE.as_ptr(), NODES.as_ptr(), 0);
        let value = libc::getenv(VARIABLE.as_ptr());
        !value.is_null() && CStr::from_ptr(value) == NODES
    };
    SHORTENED.store(ours, Ordering::Relaxed);
}

pub(super) fn told() -> &'static str {
    if SHORTENED.load(Ordering::Relaxed) { TOLD } else { "" }
}
