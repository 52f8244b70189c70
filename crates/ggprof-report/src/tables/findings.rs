//! What costs time, as `ggprof explain` says it.

use super::Recording;
use crate::documents::explain_phases;
use crate::findings::{Words, words};
use crate::parquet::Field;
use ggprof_analysis::{Finding, NodeSums};

pub(super) struct Row<'r> {
    recording: &'r Recording<'r>,
    finding: Finding,
    rule: String,
    phase: String,
    share: f64,
    words: Words,
}

/// The most expensive first.
pub(super) fn rows<'r>(recording: &'r Recording<'r>) -> Vec<Row<'r>> {
    let Recording { trace, phases, peaks, hosts, .. } = recording;
    let explained = explain_phases(trace, phases, &NodeSums::by_budget(trace, phases), *peaks);
    let row = |finding: &Finding| {
        let Words { sentence, evidence, advice, certainty } = words(trace, &explained, finding);
        let [sentence, evidence, advice] =
            [sentence, evidence, advice].map(|text| hosts.without(text));
        Row {
            recording,
            rule: format!("R{}", finding.rule.0),
            phase: explained.budgets[finding.budget].label.clone(),
            share: explained.share(finding),
            words: Words { sentence, evidence, advice, certainty },
            finding: finding.clone(),
        }
    };
    explained.findings.iter().map(row).collect()
}

pub(super) fn fields<'r>() -> Vec<Field<Row<'r>>> {
    vec![
        Field::text("recording", "whose it is", |row| row.recording.id().into()),
        Field::text("rule", "its number in [explain.md](explain.md)", |row| {
            row.rule.as_str().into()
        }),
        Field::text("phase_label", "the phase that it is about", |row| row.phase.as_str().into()),
        Field::integer("cost_ns", "what would be saved of the phase", |row| {
            row.finding.cost_ns.into()
        }),
        Field::real("share", "of the phase, as a fraction of one", |row| row.share.into()),
        Field::flag("is_estimate", "the cost follows from a comparison", |row| {
            row.finding.is_estimate.into()
        }),
        Field::text("certainty", "`certain`, `likely` or `worth a try`", |row| {
            row.words.certainty.into()
        }),
        Field::text("sentence", "what was found", |row| row.words.sentence.as_str().into()),
        Field::text("evidence", "how one knows", |row| row.words.evidence.as_str().into()),
        Field::text("advice", "what to change", |row| row.words.advice.as_str().into()),
    ]
}
