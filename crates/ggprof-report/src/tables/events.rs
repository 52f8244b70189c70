//! Each op and each copy.

use super::{Recording, known};
use crate::documents::phase_name;
use crate::parquet::{Field, Value};
use ggprof_analysis::detailed::{kernels_of, place_of_run};
use ggprof_analysis::estimates::CopyTimes;
use ggprof_analysis::{Attended, Place, Places, Work, fusion_of, places, work_of};
use ggprof_trace::{
    Event, EventId, EventKind, Signature, SignatureId, StringId, ThreadFold, shape_text,
};

/// What all rows share.
pub(super) struct Context<'r> {
    recording: &'r Recording<'r>,
    places: Places,
    signatures: Vec<Described>,
    attended: Attended,
    copies: CopyTimes,
    order: Vec<u32>,
}

/// What is the same for all events of a signature.
struct Described {
    output: String,
    sources: String,
    work: Work,
}

pub(super) struct Row<'c> {
    context: &'c Context<'c>,
    event: Event,
    described: &'c Described,
    work: Work,
    place: Place,
    phase: Option<u32>,
    threads: Option<ThreadFold>,
    kernels: Option<String>,
}

impl<'r> Context<'r> {
    pub(super) fn new(recording: &'r Recording<'r>) -> Self {
        let trace = recording.trace;
        let starts: Vec<u64> = trace.events.starts().collect();
        let mut order: Vec<u32> = (0..starts.len() as u32).collect();
        order.sort_by_key(|&event| starts[event as usize]);
        let described = |(_, signature): (_, &Signature)| Described {
            output: shape_text::tensor(&signature.output, &trace.types),
            sources: shape_text::sources(signature, &trace.types),
            work: work_of(trace, signature),
        };
        Self {
            recording,
            places: places(trace),
            signatures: trace.nodes.signatures().map(described).collect(),
            attended: Attended::of(trace),
            copies: CopyTimes::of(trace),
            order,
        }
    }

    /// By start.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.order.iter().map(|&event| self.row(EventId(event)))
    }

    fn row(&self, id: EventId) -> Row<'_> {
        let Recording { trace, phases, .. } = self.recording;
        let event = trace.events.get(id);
        let SignatureId(signature) = trace.node(event.node).signature;
        let described = &self.signatures[signature as usize];
        let kernels = match trace.device_work.is_empty() {
            true => None,
            false => self.recording.joined(&kernels_of(trace, &event)),
        };
        Row {
            context: self,
            event,
            described,
            work: self.attended.work(trace, &event).unwrap_or(described.work),
            place: self.places.of(&event),
            phase: place_of_run(phases, &event),
            threads: trace.events.threads(id),
            kernels,
        }
    }
}

impl Row<'_> {
    fn recording(&self) -> &Recording<'_> {
        self.context.recording
    }

    fn text(&self, id: Option<StringId>) -> Value<'_> {
        id.map(|id| self.recording().trace.text(id)).into()
    }

    fn op(&self) -> &str {
        self.recording().trace.op_name(self.event.node)
    }

    fn fusion(&self) -> Value<'_> {
        let signature = self.recording().trace.signature(self.event.node);
        self.text(fusion_of(signature, self.event.kind))
    }

    fn sub_op(&self) -> Value<'_> {
        self.text(self.recording().trace.signature(self.event.node).sub_op_name)
    }

    fn phase_kind(&self) -> Option<&'static str> {
        let phases = &self.recording().phases.phases;
        Some(phase_name(phases.get(self.phase? as usize)?.kind))
    }

    /// What counts when times are added up.
    fn time_ns(&self) -> Option<u64> {
        let is_untimed = self.context.copies.is_untimed(self.recording().trace, &self.event);
        (!is_untimed).then_some(self.event.charged_ns)
    }

    fn moved_bytes(&self) -> Option<u64> {
        match self.event.kind {
            EventKind::Op => self.work.bytes_moved(),
            EventKind::Copy => Some(self.event.bytes),
        }
    }

    fn flops(&self) -> Option<u64> {
        if self.event.is_op() { self.work.flops } else { Some(0) }
    }
}

pub(super) fn fields<'c>() -> Vec<Field<Row<'c>>> {
    vec![
        Field::text("recording", "whose it is", |row| row.recording().id().into()),
        Field::integer("event", "its number in the recording", |row| row.event.id.0.into()),
        Field::text("type", "`OP` or `COPY`", |row| row.event.kind.name().into()),
        Field::text("op", "as ggml calls it; `copy_H2D` and the like", |row| row.op().into()),
        Field::text("sub_op", "of `UNARY` and `GLU`", Row::sub_op),
        Field::text("fusion", "all ops that were computed together, if several", Row::fusion),
        Field::text("tensor", "what is computed or copied", |row| {
            row.recording().trace.tensor_name(row.event.node).into()
        }),
        Field::few("layer", "of the model, by the tensor's name", |row| {
            row.place.layer.map(|layer| layer.0).into()
        }),
        Field::text("part", "of the model: `attention`, `ffn`, …", |row| {
            row.place.module.name().into()
        }),
        Field::text("backend", "who computed it, or whom it was copied to", |row| {
            row.recording().backend(row.event.backend).into()
        }),
        Field::text("source_backend", "where a copy came from", |row| {
            row.event.source_backend.map(|backend| row.recording().backend(backend)).into()
        }),
        Field::few("phase", "its number in `phases`", |row| row.phase.into()),
        Field::text("phase_kind", "of that phase", |row| row.phase_kind().into()),
        Field::integer("graph_run", "of the program, counted from 1", |row| {
            row.event.graph_run.map(|run| row.recording().trace.run_number(run)).into()
        }),
        Field::few("split", "of the graph", |row| i64::from(row.event.split).into()),
        Field::integer("start_ns", "by the recording's clock", |row| row.event.start_ns.into()),
        Field::integer("duration_ns", "until its end", |row| row.event.duration_ns.into()),
        Field::integer(
            "time_ns",
            "what counts in sums: without what overlaps on the device; empty for copies of which only \
             the call was timed",
            |row| row.time_ns().into(),
        ),
        Field::text("measured", "by which clock: `device`, `host`, …", |row| {
            row.event.measured.name().into()
        }),
        Field::few("bytes", "of the output, or copied", |row| row.event.bytes.into()),
        Field::few("moved_bytes", "read and written", |row| row.moved_bytes().into()),
        Field::few("flops", "floating point operations", |row| row.flops().into()),
        Field::text("output", "shape and type", |row| known(&row.described.output)),
        Field::text("sources", "shapes and types", |row| known(&row.described.sources)),
        Field::few("threads", "that computed it", |row| row.threads.map(|it| it.threads).into()),
        Field::integer("busy_sum_ns", "working time of all threads", |row| {
            row.threads.map(|it| it.busy_sum_ns).into()
        }),
        Field::integer("wait_sum_ns", "time of all threads at barriers", |row| {
            row.threads.map(|it| it.wait_sum_ns).into()
        }),
        Field::text("kernels", "of the device, joined by ` + `", |row| {
            row.kernels.as_deref().into()
        }),
    ]
}
