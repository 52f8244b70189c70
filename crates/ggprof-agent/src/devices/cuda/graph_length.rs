//! How long CUDA graphs are while every kernel is traced. CUPTI takes two microseconds for each
//! node of a graph that is launched, before the device begins. With shorter graphs it does so while
//! the device works on the graph before, and a model of a billion weights keeps 0.80 of its speed
//! instead of 0.69 (docs/overhead.md). ggml has a setting for it since the summer of 2026; the
//! texts in its library show whether this ggml knows the setting.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use ggprof_spool::layout::CoveredWhy;

use crate::observe::adopted::Adopted;
use crate::patch::symbols;

const VARIABLE: &CStr = c"GGML_CUDA_GRAPH_CHUNK_SIZE";
/// Written in an unusual way, so that a program started by this one recognises that the agent set
/// it.
const NODES: &CStr = c"064";

static ASKED_FOR: AtomicBool = AtomicBool::new(false);

/// Unless the user has set it. Before `main`, no other code reads the environment.
pub(crate) fn shorten() {
    // SAFETY: all are C strings, that of the environment as long as nobody changes it; the
    // program's threads do not run yet.
    let ours = unsafe {
        libc::setenv(VARIABLE.as_ptr(), NODES.as_ptr(), 0);
        let value = libc::getenv(VARIABLE.as_ptr());
        !value.is_null() && CStr::from_ptr(value) == NODES
    };
    ASKED_FOR.store(ours, Ordering::Relaxed);
}

/// For the recording, because the user did not ask for this change: that graphs are shortened, and
/// whether it has an effect on this backend. Calls the loader.
pub(super) fn told(adopted: &Adopted) -> CoveredWhy {
    if !ASKED_FOR.load(Ordering::Relaxed) {
        return CoveredWhy::Untold;
    }
    match adopted.library().and_then(|library| symbols::has_text(&library, VARIABLE)) {
        Some(true) => CoveredWhy::ShorterGraphs,
        Some(false) => CoveredWhy::GraphsNotShortened,
        None => CoveredWhy::GraphsPerhapsShortened,
    }
}
