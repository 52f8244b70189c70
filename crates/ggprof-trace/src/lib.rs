//! The model of a recording, and the formats it is read from and written to.
//!
//! Everything downstream (analysis, reports, the viewer) works on one [`Trace`];
//! everything upstream (a ggml profiler JSON, the agent's spool) is turned into one.
//! This crate does no I/O outside [`formats`], reads no clock and prints nothing.

#![forbid(unsafe_code)]

mod divisor;
mod done;
pub mod formats;
mod gaps;
pub mod graph_runs;
mod merge;
pub mod model;
mod selection;
#[cfg(any(test, feature = "text-fixture"))]
pub mod text_fixture;

pub use divisor::Divisor;
pub use done::done;
pub use merge::{CannotMerge, merge};
pub use model::shape_text;
pub use model::{
    Answer, Backend, BackendIndex, Batch, BatchFunction, BatchId, BatchSequence, Buffer,
    BufferUsage, ContextChange, ContextChangeKind, CopyDirection, CopyEnds, Coverage, Covered,
    CoveredHow, CoveredWhy, DayClock, DeviceType, DeviceWork, Dropped, Event, EventId, EventKind,
    Events, ExpertUse, ExpertUses, Extent, FreeMemory, Gap, Ggml, GraphCall, GraphRun, GraphRunId,
    HostTask, Loss, LossKind, Measured, Member, MemoryIndex, MemoryKind, NewEvent, Node, NodeId,
    Origin, Placement, Process, ProcessClock, ProcessIndex, Provenance, Quantity, RemoteLink,
    RemoteRun, Sensor, Shape, Signature, SignatureId, Source, Stopped, Stretch, StringId, TaskKind,
    Tensor, ThreadFold, ThreadShare, Trace, Transfer, TypeInfo, TypeTable, WorkKind, WorkOrigin,
};
