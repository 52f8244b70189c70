//! What each report says.

mod backends;
mod columns;
mod depth;
mod energy;
mod layers;
mod memory;
mod observation;
mod operations;
mod phases;
mod rankings;
mod requests;
mod runs;
mod sampling;
mod shapes;
mod summary;

pub use observation::observation;
pub use rankings::{inefficiency, top_kernels, top_ops};
pub(crate) use summary::head;
pub use summary::summary;

use crate::Document;
use ggprof_trace::Trace;

/// What a table has one row for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Op,
    Backend,
    Shape,
    Layer,
    Phase,
    Request,
    Run,
    Second,
    Depth,
    Memory,
}

/// All totals by one criterion.
pub fn by(trace: &Trace, by: By) -> Document {
    let mut document = Document::default();
    summary::warn(&mut document, trace);
    match by {
        By::Op => operations::all(&mut document, trace),
        By::Backend => backends::all(&mut document, trace),
        By::Shape => shapes::all(&mut document, trace),
        By::Layer => layers::all(&mut document, trace),
        By::Phase => phases::all(&mut document, trace),
        By::Request => requests::all(&mut document, trace),
        By::Run => runs::all(&mut document, trace),
        By::Second => runs::by_second(&mut document, trace),
        By::Depth => depth::all(&mut document, trace),
        By::Memory => memory::all(&mut document, trace),
    }
    document
}
