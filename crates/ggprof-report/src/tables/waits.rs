//! Every wait between two tokens of a request, and what happened in it.

use super::Recording;
use crate::documents::{other_request, wait_words};
use crate::parquet::Field;
use ggprof_analysis::{Request, Wait};

pub(super) struct Row<'r> {
    recording: &'r Recording<'r>,
    request: &'r Request,
    wait: &'r Wait,
    cause: String,
}

/// By request, then by start.
pub(super) fn rows<'r>(recording: &'r Recording<'r>) -> impl Iterator<Item = Row<'r>> {
    let requests = recording.phases.requests.iter();
    requests.flat_map(move |request| {
        let row =
            move |wait: &'r Wait| Row { recording, request, wait, cause: wait_words(wait.cause) };
        request.waits.iter().map(row)
    })
}

pub(super) fn fields<'r>() -> Vec<Field<Row<'r>>> {
    vec![
        Field::text("recording", "whose it is", |row| row.recording.id().into()),
        Field::integer("request", "the number of its request", |row| row.request.number.into()),
        Field::integer("start_ns", "when the token before was there", |row| {
            row.wait.start_ns.into()
        }),
        Field::integer("duration_ns", "until the next token was there", |row| {
            row.wait.duration_ns().into()
        }),
        Field::integer("own_ns", "its own token was computed", |row| {
            row.wait.shares.own_step.into()
        }),
        Field::integer(
            "shared_ns",
            "its own token was computed, in a batch with prompts of others",
            |row| row.wait.shares.shared_with_prompt.into(),
        ),
        Field::integer("prompt_ns", "prompts of others were computed", |row| {
            row.wait.shares.other_prompt.into()
        }),
        Field::integer("others_ns", "others generated", |row| {
            row.wait.shares.other_generation.into()
        }),
        Field::integer("graph_ns", "graphs without tokens were computed", |row| {
            row.wait.shares.other_graph.into()
        }),
        Field::integer("nobody_ns", "the program computed nothing", |row| {
            row.wait.shares.nobody.into()
        }),
        Field::integer("unrecorded_ns", "it was not recorded", |row| {
            row.wait.shares.unrecorded.into()
        }),
        Field::text("cause", "what took most of it", |row| row.cause.as_str().into()),
        Field::integer("cause_request", "whose prompt that was", |row| {
            other_request(row.wait.cause).into()
        }),
    ]
}
