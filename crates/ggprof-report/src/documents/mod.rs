//! What each report says.

mod backends;
pub(crate) mod budget;
mod columns;
mod copies;
mod depth;
mod diff;
mod diff_words;
mod energy;
mod experts;
mod explain;
mod index;
mod issue;
mod layers;
mod memory;
mod observation;
mod op_bench;
mod op_string;
mod operations;
mod peaks;
mod phases;
mod placement;
pub(crate) mod processes;
mod rankings;
mod remote;
mod repeated;
mod requests;
mod runs;
mod sampling;
mod shapes;
mod summary;
mod what_if;

pub(crate) use copies::{class as copied_tensors, host_memory};
pub(crate) use depth::depth_label;
pub use diff::{Compared, diff};
pub use diff_words::phase as compared_phase;
pub use explain::explain;
pub(crate) use explain::{beside_findings, explain_phases, tables as tables_behind_findings};
pub use index::{Catalogued, index};
pub use issue::issue;
pub use observation::observation;
pub use op_bench::{LeastOp, OpBenchRow, op_bench};
pub use peaks::peaks;
pub(crate) use phases::kind_name as phase_name;
pub use rankings::{inefficiency, top_kernels, top_ops};
pub use remote::merged;
pub use repeated::repeated;
pub(crate) use requests::{other_request, request_waits, wait_words};
pub(crate) use summary::head;
pub use summary::summary;

use crate::Document;
use ggprof_analysis::Peaks;
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
    Placement,
    Copy,
    Expert,
}

/// All totals by one criterion, held against what the machine can do where that is known.
pub fn by(trace: &Trace, by: By, peaks: Option<&Peaks>) -> Document {
    let mut document = Document::default();
    summary::warn(&mut document, trace);
    match by {
        By::Op => operations::all(&mut document, trace, peaks),
        By::Backend => backends::all(&mut document, trace),
        By::Shape => shapes::all(&mut document, trace),
        By::Layer => layers::all(&mut document, trace),
        By::Phase => phases::all(&mut document, trace),
        By::Request => requests::all(&mut document, trace),
        By::Run => runs::all(&mut document, trace),
        By::Second => runs::by_second(&mut document, trace),
        By::Depth => depth::all(&mut document, trace),
        By::Memory => memory::all(&mut document, trace),
        By::Placement => placement::all(&mut document, trace),
        By::Copy => copies::all(&mut document, trace, peaks),
        By::Expert => experts::all(&mut document, trace),
    }
    document
}
