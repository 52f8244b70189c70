//! Copies between backends, by what is copied and from which memory to which.

use super::Recording;
use crate::documents::{copied_tensors, host_memory, phase_name};
use crate::parquet::{Field, Value};
use ggprof_analysis::copies::{CopyRow, copies};
use ggprof_analysis::{divided, places};
use ggprof_trace::MemoryIndex;

pub(super) struct Row<'r> {
    recording: &'r Recording<'r>,
    copies: CopyRow,
}

/// By phase, the most bytes first.
pub(super) fn rows<'r>(recording: &'r Recording<'r>) -> impl Iterator<Item = Row<'r>> {
    let Recording { trace, phases, .. } = recording;
    let exposed = divided(trace, phases, &places(trace)).exposed;
    let rows = copies(trace, phases, &exposed).rows;
    rows.into_iter().map(|copies| Row { recording, copies })
}

impl Row<'_> {
    fn memory(&self, memory: Option<MemoryIndex>) -> Value<'_> {
        let Recording { trace, hosts, .. } = self.recording;
        memory.map(|memory| hosts.hidden(&trace.memory_kind(memory).type_name)).into()
    }
}

pub(super) fn fields<'r>() -> Vec<Field<Row<'r>>> {
    vec![
        Field::text("recording", "whose they are", |row| row.recording.id().into()),
        Field::text("phase_kind", "when; empty outside of phases", |row| {
            row.copies.phase.map(phase_name).into()
        }),
        Field::text(
            "tensors",
            "`weights`, `experts`, `KV cache`, `inputs`, `activations`, `not known`",
            |row| copied_tensors(row.copies.class).into(),
        ),
        Field::text("direction", "`H2D`, `D2H`, `D2D`", |row| row.copies.direction.name().into()),
        Field::text("source_backend", "from", |row| {
            row.copies.source_backend.map(|backend| row.recording.backend(backend)).into()
        }),
        Field::text("backend", "to", |row| row.recording.backend(row.copies.backend).into()),
        Field::text("source_memory", "as ggml calls it", |row| row.memory(row.copies.source)),
        Field::text("target_memory", "as ggml calls it", |row| row.memory(row.copies.target)),
        Field::text("host_memory", "`pinned` or `pageable`, of the host's end", |row| {
            row.copies.host_memory(row.recording.trace).map(host_memory).into()
        }),
        Field::integer("copies", "how many", |row| row.copies.copies.into()),
        Field::integer("graph_runs", "in so many graph runs", |row| row.copies.graph_runs.into()),
        Field::integer("bytes", "of all of them", |row| row.copies.bytes.into()),
        Field::integer("time_ns", "of those that were timed", |row| row.copies.timed_ns.into()),
        Field::integer("timed_bytes", "of those that were timed", |row| {
            row.copies.timed_bytes.into()
        }),
        Field::integer("exposed_ns", "during which no backend computed", |row| {
            row.copies.exposed_ns.into()
        }),
    ]
}
