//! Prompts and what was generated from each.

use super::Recording;
use crate::documents::{request_waits, wait_words};
use crate::parquet::Field;
use ggprof_analysis::Request;

pub(super) struct Row<'r> {
    recording: &'r Recording<'r>,
    request: &'r Request,
    /// Median and 95th percentile of the times between its tokens.
    percentiles: Option<(u64, u64)>,
    longest_ns: Option<u64>,
    cause: Option<String>,
}

/// By start.
pub(super) fn rows<'r>(recording: &'r Recording<'r>) -> impl Iterator<Item = Row<'r>> {
    recording.phases.requests.iter().map(move |request| {
        let waits = request_waits(request);
        Row {
            recording,
            request,
            percentiles: waits.percentiles,
            longest_ns: waits.longest.map(|wait| wait.duration_ns()),
            cause: waits.longest.map(|wait| wait_words(wait.cause)),
        }
    })
}

pub(super) fn fields<'r>() -> Vec<Field<Row<'r>>> {
    vec![
        Field::text("recording", "whose it is", |row| row.recording.id().into()),
        Field::integer("request", "its number, from 0", |row| row.request.number.into()),
        Field::flag("is_warm_up", "a trial", |row| row.request.is_warm_up.into()),
        Field::flag(
            "began_before",
            "something of it was computed before what was recorded",
            |row| row.request.began_before.into(),
        ),
        Field::integer("start_ns", "when the first of its prompt began to be computed", |row| {
            row.request.start_ns.into()
        }),
        Field::integer("end_ns", "when its last token was there", |row| row.request.end_ns.into()),
        Field::integer("prompt_tokens", "computed", |row| row.request.prompt_tokens.into()),
        Field::integer("reused_tokens", "that were in the context already", |row| {
            row.request.reused_tokens.into()
        }),
        Field::integer("chunks", "batches that its prompt came in", |row| {
            row.request.chunks.into()
        }),
        Field::integer(
            "first_token_ns",
            "from its first batch to its first token; a queue before that is not seen",
            |row| row.request.first_token_ns.into(),
        ),
        Field::integer("generated", "tokens, the first included", |row| {
            row.request.generated.into()
        }),
        Field::real("tokens_per_s", "after the first token", |row| {
            row.request.tokens_per_second().into()
        }),
        Field::integer("p50_wait_ns", "between two tokens, median", |row| {
            row.percentiles.map(|(p50, _)| p50).into()
        }),
        Field::integer("p95_wait_ns", "between two tokens, 95 % are shorter", |row| {
            row.percentiles.map(|(_, p95)| p95).into()
        }),
        Field::integer("longest_wait_ns", "between two tokens", |row| row.longest_ns.into()),
        Field::text("longest_wait_cause", "what took most of it", |row| {
            row.cause.as_deref().into()
        }),
    ]
}
