//! What was found, in sentences: what it is, what it costs, how one knows, what to try. The words for
//! what a rule finds are in a file of their own.

mod bubbles;
mod copies;
mod depth;
mod draft;
mod first_use;
mod host_ops;
mod large_rows;
mod launches;
mod option_names;
mod program;
mod prompt_again;
mod remote;
mod slow_clock;
mod slower_device;
mod small_batches;
mod splits;
#[cfg(test)]
mod tests;
mod threads;
mod throttled;

use crate::Cell;
use crate::document::Point;
use crate::spent_words::{self, unit};
use crate::units;
use ggprof_analysis::findings::{Certainty, Explained, Finding, NotSeen, Rate, What};
use ggprof_analysis::{Budget, Spent};
use ggprof_trace::{BackendIndex, Trace};

/// From this part of the roof on, a phase is at the limit.
const AT_THE_LIMIT: f64 = 0.8;

/// Measuring is not exact, but no memory is so much faster than it was measured.
const FROM_A_CACHE: f64 = 1.05;

/// A finding in words.
pub(crate) struct Words {
    pub(crate) sentence: String,
    pub(crate) evidence: String,
    pub(crate) advice: String,
    pub(crate) certainty: &'static str,
}

/// Ops and copies that are named; more would hide the first.
const SHOWN: usize = 3;

/// What a rule finds, in words.
trait InWords {
    /// What it is, in one sentence of the user's words.
    fn sentence(&self, told: &Told<'_>) -> String;
    /// How one knows: the ops, tensors and times behind it.
    fn evidence(&self, told: &Told<'_>) -> String;
    /// What to try: the flag or the change.
    fn advice(&self, told: &Told<'_>) -> String;
}

/// Where it was found.
struct Told<'a> {
    trace: &'a Trace,
    budget: &'a Budget,
}

impl<'a> Told<'a> {
    fn label(&self, backend: BackendIndex) -> &'a str {
        self.trace.backend(backend).label()
    }

    /// Time of the whole phase, for each of its tokens or graph runs.
    fn each(&self, ns: u64) -> String {
        units::duration(ns as f64 / self.budget.units() as f64)
    }
}

fn time(ns: u64) -> String {
    units::duration(ns as f64)
}

fn in_words(what: &What) -> &dyn InWords {
    match what {
        What::HostOps(found) => found,
        What::ManySplits(found) => found,
        What::ExposedCopies(found) => found,
        What::SlowCopies(found) => found,
        What::CopiedWeights(found) => found,
        What::Program(found) => found,
        What::Barriers(found) => found,
        What::UnequalThreads(found) => found,
        What::TooManyThreads(found) => found,
        What::SmallKernels(found) => found,
        What::GraphsOff(found) => found,
        What::PromptAgain(found) => found,
        What::Depth(found) => found,
        What::Draft(found) => found,
        What::SlowClock(found) => found,
        What::FirstUse(found) => found,
        What::Bubbles(found) => found,
        What::SmallBatches(found) => found,
        What::RoundTrips(found) => found,
        What::GraphSentAgain(found) => found,
        What::SlowServer(found) => found,
        What::SlowerDevice(found) => found,
        What::Throttled(found) => found,
        What::LargeRow(found) => found,
    }
}

pub(crate) fn words(trace: &Trace, explained: &Explained, finding: &Finding) -> Words {
    let told = Told { trace, budget: &explained.budgets[finding.budget] };
    let found = in_words(&finding.what);
    let mut advice = found.advice(&told);
    if let Some(names) = option_names::names_in(trace, &advice) {
        advice = format!("{advice}; {names}");
    }
    Words {
        sentence: found.sentence(&told),
        evidence: found.evidence(&told),
        advice,
        certainty: certainty(finding.certainty),
    }
}

/// A finding as a point of a list.
fn point(trace: &Trace, explained: &Explained, finding: &Finding) -> Point {
    let budget = &explained.budgets[finding.budget];
    let share = explained.share(finding);
    let each_ns = finding.cost_ns as f64 / budget.units() as f64;
    let Words { sentence, evidence, advice, certainty } = words(trace, explained, finding);
    let about = match finding.what {
        What::LargeRow(_) => "at most ",
        _ if finding.is_estimate => "about ",
        _ => "",
    };
    let cost = format!("{about}{} a {}", units::duration(each_ns), unit(budget));
    let lines = vec![("because", evidence), ("try", format!("{advice} ({certainty})"))];
    Point {
        text: format!("{}: {sentence} ({cost})", where_and_share(budget, share)),
        values: vec![
            ("rule", Cell::Text(format!("R{}", finding.rule.0))),
            ("phase", Cell::text(&budget.label)),
            ("sentence", Cell::text(&sentence)),
            ("cost_ns", Cell::Nanos(finding.cost_ns as f64)),
            ("cost_ns_per_unit", Cell::Nanos(each_ns)),
            ("unit", Cell::text(unit(budget))),
            ("share", Cell::Share(share)),
            ("is_estimate", Cell::Flag(finding.is_estimate)),
            ("certainty", Cell::text(certainty)),
            ("try", Cell::text(&advice)),
        ],
        lines,
        is_again: false,
    }
}

/// `tg128 73.2%`.
fn where_and_share(budget: &Budget, share: f64) -> String {
    format!("{} {}", budget.label, units::share(share))
}

/// Findings as points of a list, `most` causes of them. What is found in several phases is said once, with
/// the phase that it costs most in.
pub(crate) fn points<'f>(
    trace: &Trace,
    explained: &Explained,
    findings: impl Iterator<Item = &'f Finding>,
    most: usize,
) -> Vec<(&'f Finding, Point)> {
    // The place of the point that says it first, for each cause.
    let mut causes: Vec<(usize, String)> = Vec::new();
    let mut points: Vec<(&Finding, Point)> = Vec::new();
    for finding in findings {
        let Words { sentence, advice, .. } = words(trace, explained, finding);
        let cause = format!("{sentence}\n{advice}");
        let mut point = point(trace, explained, finding);
        match causes.iter().find(|(_, known)| *known == cause) {
            Some(&(first, _)) => {
                let budget = &explained.budgets[finding.budget];
                let also = where_and_share(budget, explained.share(finding));
                add_to_line(&mut points[first].1, "also", also);
                point.is_again = true;
            }
            None if causes.len() == most => continue,
            None => causes.push((points.len(), cause)),
        }
        points.push((finding, point));
    }
    points
}

fn add_to_line(point: &mut Point, title: &'static str, words: String) {
    match point.lines.iter_mut().find(|(known, _)| *known == title) {
        Some((_, line)) => *line = format!("{line}, {words}"),
        None => point.lines.insert(0, (title, words)),
    }
}

fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Certain => "certain",
        Certainty::Likely => "likely",
        Certainty::Possible => "worth a try",
    }
}

/// Whether nothing is worth a change, and enough was seen to say so.
pub(crate) fn is_healthy(trace: &Trace, explained: &Explained) -> bool {
    let is_seen = !trace.events.is_empty() && explained.not_seen.is_empty();
    is_seen && explained.worth_a_change().next().is_none()
}

/// What to say where nothing is worth a change.
pub(crate) fn nothing_found(trace: &Trace, explained: &Explained) -> String {
    if trace.events.is_empty() {
        return "Nothing that computes was recorded, so there is nothing to explain.".to_owned();
    }
    let nothing = "No single cause takes 5% or more of a phase";
    if !explained.not_seen.is_empty() {
        return format!("{nothing}, as far as it was seen.");
    }
    let rate = explained.rates.iter().max_by(|a, b| a.gb_per_s.total_cmp(&b.gb_per_s));
    match rate {
        Some(rate) => format!("{nothing}. {}", limit(trace, explained, rate)),
        None => format!("{nothing}."),
    }
}

/// `of tg32, 93.1% is not seen: waiting for a device …`: a sentence for each such part.
pub(crate) fn not_seen(trace: &Trace, explained: &Explained) -> Vec<String> {
    let sentence = |it: &NotSeen| {
        let budget = &explained.budgets[it.budget];
        let share = units::share(budget.share(it.ns));
        let words = match it.spent {
            Spent::Launching { backend } => format!(
                "calls that hand work to {}, which gives no times of its own",
                trace.backend(backend).label()
            ),
            spent => spent_words::words(trace, spent),
        };
        format!("Of {}, {share} is not explained: {words}.", budget.label)
    };
    explained.not_seen.iter().map(sentence).collect()
}

/// How near a phase is to what its device can do.
pub(crate) fn limit(trace: &Trace, explained: &Explained, rate: &Rate) -> String {
    let label = &explained.budgets[rate.budget].label;
    let backend = trace.backend(rate.backend).label();
    let read = units::bandwidth(rate.gb_per_s);
    match (rate.of_roof(), rate.best_seen) {
        (Some(share), _) if share > FROM_A_CACHE => format!(
            "{label} on {backend} moves {read}, {} of the memory bandwidth of this machine: its weights \
             come from a cache, so this says nothing of what could be gained.",
            units::share(share)
        ),
        (Some(share), _) if share >= AT_THE_LIMIT => format!(
            "{label} on {backend} is at {} of the memory bandwidth of this machine ({read}): nothing \
             to gain but fewer bytes (a smaller quantisation, fewer experts, a smaller cache).",
            units::share(share)
        ),
        (Some(share), _) => format!(
            "{label} on {backend} moves {read}, {} of the memory bandwidth of this machine.",
            units::share(share)
        ),
        (None, Some(best)) => format!(
            "{label} on {backend} moves {read}; its best op reached {}. What the machine can do is \
             not known: `ggprof peaks` measures it.",
            units::bandwidth(best)
        ),
        (None, None) => format!(
            "{label} on {backend} moves {read}. What the machine can do is not known: `ggprof peaks` \
             measures it."
        ),
    }
}
