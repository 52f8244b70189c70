//! A recording that was read; `input.rs` opens it.

use ggprof_analysis::Peaks;
use ggprof_trace::Trace;

/// A recording and what people call it.
pub(crate) struct Recording {
    pub(crate) trace: Trace,
    pub(crate) name: String,
    /// What the machine can do that it was made on, if that is known.
    pub(crate) peaks: Option<Peaks>,
}
