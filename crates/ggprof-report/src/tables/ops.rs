//! Sums by phase, op, shape, backend and kernel.

use super::{Recording, known};
use crate::documents::phase_name;
use crate::parquet::{Field, Value};
use ggprof_analysis::{DetailedRow, Phase, by_detail, fusion_of};
use ggprof_trace::{EventKind, Signature, StringId, shape_text};

pub(super) struct Row<'r> {
    recording: &'r Recording<'r>,
    sum: DetailedRow,
    label: Option<String>,
    output: String,
    sources: String,
    kernels: Option<String>,
}

/// The longest first.
pub(super) fn rows<'r>(recording: &'r Recording<'r>) -> impl Iterator<Item = Row<'r>> {
    by_detail(recording.trace, &recording.phases).into_iter().map(|sum| row(recording, sum))
}

fn row<'r>(recording: &'r Recording<'r>, sum: DetailedRow) -> Row<'r> {
    let trace = recording.trace;
    let signature = trace.nodes.signature(sum.signature);
    let label = sum.phase.map(|place| recording.phases.phases[place as usize].label());
    let output = shape_text::tensor(&signature.output, &trace.types);
    let sources = shape_text::sources(signature, &trace.types);
    let kernels = recording.joined(&sum.kernels);
    Row { recording, sum, label, output, sources, kernels }
}

impl Row<'_> {
    fn phase(&self) -> Option<&Phase> {
        Some(&self.recording.phases.phases[self.sum.phase? as usize])
    }

    fn signature(&self) -> &Signature {
        self.recording.trace.nodes.signature(self.sum.signature)
    }

    fn text(&self, id: Option<StringId>) -> Value<'_> {
        id.map(|id| self.recording.trace.text(id)).into()
    }

    /// A figure of those that were timed.
    fn timed<'a, T: Into<Value<'a>>>(&self, figure: T) -> Value<'a> {
        if self.sum.totals.only_calls { Value::Nothing } else { figure.into() }
    }
}

pub(super) fn fields<'r>() -> Vec<Field<Row<'r>>> {
    let mut fields = keys();
    fields.extend(figures());
    fields
}

fn keys<'r>() -> Vec<Field<Row<'r>>> {
    vec![
        Field::text("recording", "whose it is", |row| row.recording.id().into()),
        Field::text("phase_label", "phases of one label together, as in `phases`", |row| {
            row.label.as_deref().into()
        }),
        Field::text("phase_kind", "their kind", |row| {
            row.phase().map(|phase| phase_name(phase.kind)).into()
        }),
        Field::text("type", "`OP` or `COPY`", |row| row.sum.kind.name().into()),
        Field::text("op", "as ggml calls it; `copy_H2D` and the like", |row| {
            row.text(Some(row.signature().op))
        }),
        Field::text("sub_op", "of `UNARY` and `GLU`", |row| row.text(row.signature().sub_op_name)),
        Field::text("fusion", "all ops that were computed together, if several", |row| {
            row.text(fusion_of(row.signature(), row.sum.kind))
        }),
        Field::text("output", "shape and type", |row| known(&row.output)),
        Field::text("sources", "shapes and types", |row| known(&row.sources)),
        Field::text("backend", "who computed it, or whom it was copied to", |row| {
            row.recording.backend(row.sum.backend).into()
        }),
        Field::text("kernels", "of the device, joined by ` + `", |row| {
            row.kernels.as_deref().into()
        }),
    ]
}

fn figures<'r>() -> Vec<Field<Row<'r>>> {
    vec![
        Field::integer("count", "calls that were seen", |row| row.sum.totals.count.into()),
        Field::integer("time_ns", "measured; the sum of `time_ns` of the events", |row| {
            row.timed(row.sum.totals.total_ns)
        }),
        Field::integer(
            "estimated_ns",
            "beyond that, by samples; negative for a split whose time went to its ops",
            |row| row.sum.totals.estimate.map(|estimate| estimate.ns as i64).into(),
        ),
        Field::integer("call_ns", "calls that only started copies", |row| {
            Some(row.sum.totals.call_ns).filter(|&ns| ns > 0).into()
        }),
        Field::integer("min_ns", "the shortest call", |row| row.timed(row.sum.totals.min_ns)),
        Field::integer("p50_ns", "the median", |row| row.timed(row.sum.totals.p50_ns)),
        Field::integer("p95_ns", "95 % are shorter", |row| row.timed(row.sum.totals.p95_ns)),
        Field::integer("max_ns", "the longest call", |row| row.timed(row.sum.totals.max_ns)),
        Field::integer("moved_bytes", "read and written", |row| row.sum.totals.moved_bytes.into()),
        Field::integer("flops", "floating point operations", |row| {
            row.sum.totals.flops.filter(|_| row.sum.kind == EventKind::Op).into()
        }),
        Field::integer("busy_sum_ns", "working time of all threads", |row| {
            Some(row.sum.totals.thread_busy_ns).filter(|&ns| ns > 0).into()
        }),
        Field::integer("wait_sum_ns", "time of all threads at barriers", |row| {
            Some(row.sum.totals.thread_wait_ns).filter(|&ns| ns > 0).into()
        }),
    ]
}
