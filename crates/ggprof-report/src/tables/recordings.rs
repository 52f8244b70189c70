//! One row: where and of what the recording was made.

use super::Recording;
use crate::parquet::{Field, Value};
use ggprof_analysis::hosts::devices;
use ggprof_analysis::{ModelFacts, model_facts, most_threads};
use ggprof_trace::{EventKind, Ggml, Provenance, Trace};

pub(super) struct Row<'r> {
    recording: &'r Recording<'r>,
    devices: String,
    model: ModelFacts,
    quantisation: Option<String>,
    span_ns: Option<(u64, u64)>,
    threads: Option<u32>,
}

pub(super) fn rows<'r>(recording: &'r Recording<'r>) -> [Row<'r>; 1] {
    let trace = recording.trace;
    let model = model_facts(trace);
    let quantisation = model.quantisation.first().map(|(name, _)| name.clone());
    [Row {
        recording,
        devices: devices(trace, &recording.hosts).join(" + "),
        quantisation,
        model,
        span_ns: trace.span_ns(),
        threads: most_threads(trace),
    }]
}

impl Row<'_> {
    fn trace(&self) -> &Trace {
        self.recording.trace
    }

    /// A fact that the recorder noted; nothing where it is empty.
    fn noted(&self, fact: fn(&Provenance) -> &str) -> Value<'_> {
        self.trace().provenance.as_ref().map(fact).filter(|text| !text.is_empty()).into()
    }

    /// The same about the first copy of ggml.
    fn of_ggml(&self, fact: fn(&Ggml) -> &str) -> Value<'_> {
        let ggml = self.trace().provenance.as_ref().and_then(|facts| facts.ggml.first());
        ggml.map(fact).filter(|text| !text.is_empty()).into()
    }

    fn events(&self, kind: EventKind) -> u64 {
        self.trace().events.iter().filter(|event| event.kind == kind).count() as u64
    }

    fn recorded_at(&self) -> Option<u64> {
        let unix_ns = self.trace().provenance.as_ref()?.recorded_at_unix_ns;
        (unix_ns > 0).then_some(unix_ns / 1000)
    }
}

pub(super) fn fields<'r>() -> Vec<Field<Row<'r>>> {
    let mut fields = origin();
    fields.extend(contents());
    fields
}

fn origin<'r>() -> Vec<Field<Row<'r>>> {
    vec![
        Field::text("recording", "what all tables call it, by its contents", |row| {
            row.recording.id().into()
        }),
        Field::text("file", "that it was read from, without its folder", |row| {
            row.recording.file.into()
        }),
        Field::text("writer", "`ggprof` or `ggml`", |row| row.trace().writer.as_str().into()),
        Field::time("recorded_at", "when recording began", |row| row.recorded_at().into()),
        Field::text("program", "without folder and arguments", |row| {
            row.noted(|facts| facts.command.rsplit('/').next().unwrap_or_default())
        }),
        Field::text("cpu", "as it calls itself", |row| row.noted(|facts| &facts.cpu)),
        Field::text("devices", "that computed, joined by ` + `", |row| row.devices.as_str().into()),
        Field::text("ggml_version", "as ggml says", |row| row.of_ggml(|ggml| &ggml.version)),
        Field::text("ggml_commit", "as ggml says", |row| row.of_ggml(|ggml| &ggml.commit)),
    ]
}

fn contents<'r>() -> Vec<Field<Row<'r>>> {
    vec![
        Field::integer("layers", "of the model", |row| row.model.layers.into()),
        Field::integer("embedding", "length of the rows between layers", |row| {
            row.model.embedding.into()
        }),
        Field::integer("vocabulary", "tokens that the model knows", |row| {
            row.model.vocabulary.into()
        }),
        Field::text("quantisation", "type of most of the weights", |row| {
            row.quantisation.as_deref().into()
        }),
        Field::text("cache_k", "type of the cache of keys", |row| {
            row.model.cache_k.as_deref().into()
        }),
        Field::text("cache_v", "type of the cache of values", |row| {
            row.model.cache_v.as_deref().into()
        }),
        Field::flag("flash_attention", "whether it is used", |row| {
            row.model.flash_attention.into()
        }),
        Field::integer("threads", "the most that computed an op", |row| row.threads.into()),
        Field::integer("start_ns", "the first start, by the recording's clock", |row| {
            row.span_ns.map(|(start_ns, _)| start_ns).into()
        }),
        Field::integer("end_ns", "the last end", |row| {
            row.span_ns.map(|(_, end_ns)| end_ns).into()
        }),
        Field::integer("ops", "in `events`", |row| row.events(EventKind::Op).into()),
        Field::integer("copies", "in `events`", |row| row.events(EventKind::Copy).into()),
        Field::integer("graph_runs", "graphs that were computed", |row| {
            (row.trace().graph_runs.len() as u64).into()
        }),
        Field::flag("is_part", "some of it was left out on purpose", |row| {
            row.trace().is_part.into()
        }),
        Field::flag("is_complete", "nothing was lost or damaged", |row| {
            row.trace().losses.is_empty().into()
        }),
    ]
}
