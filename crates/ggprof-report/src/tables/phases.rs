//! What the program did, phase by phase.

use super::Recording;
use crate::documents::phase_name;
use crate::parquet::Field;
use ggprof_analysis::{Phase, PhaseKind};

pub(super) struct Row<'r> {
    recording: &'r Recording<'r>,
    number: u32,
    phase: &'r Phase,
    label: String,
}

/// By start.
pub(super) fn rows<'r>(recording: &'r Recording<'r>) -> impl Iterator<Item = Row<'r>> {
    let phases = (0..).zip(&recording.phases.phases);
    phases.map(move |(number, phase)| Row { recording, number, phase, label: phase.label() })
}

pub(super) fn fields<'r>() -> Vec<Field<Row<'r>>> {
    vec![
        Field::text("recording", "whose it is", |row| row.recording.id().into()),
        Field::integer("phase", "its number, from 0", |row| row.number.into()),
        Field::text("label", "as llama-bench calls it: `pp512`, `tg128 @ d4096`", |row| {
            row.label.as_str().into()
        }),
        Field::text(
            "kind",
            "`prompt`, `generation`, `mixed`, `encoding`, `graph` (without tokens) or `warm-up`",
            |row| phase_name(row.phase.kind).into(),
        ),
        Field::flag("is_guess", "kind and tokens are guessed from shapes", |row| {
            row.phase.is_guess.into()
        }),
        Field::integer("start_ns", "by the recording's clock", |row| row.phase.start_ns.into()),
        Field::integer("end_ns", "by the recording's clock", |row| row.phase.end_ns.into()),
        Field::integer("wall_ns", "from start to end, without what was not recorded", |row| {
            row.phase.wall_ns().into()
        }),
        Field::integer("graph_runs", "graphs that were computed", |row| row.phase.runs.into()),
        Field::integer("tokens", "of all of them; empty for graphs without", |row| {
            Some(row.phase.tokens).filter(|_| row.phase.kind != PhaseKind::Graph).into()
        }),
        Field::few("sequences", "generated at once; 1 for prompts", |row| {
            row.phase.sequences.into()
        }),
        Field::integer(
            "depth",
            "tokens that were there before; empty for several sequences",
            |row| row.phase.depth.into(),
        ),
        Field::real("tokens_per_s", "empty where it says nothing", |row| {
            row.phase.tokens_per_second().into()
        }),
    ]
}
