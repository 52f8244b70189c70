//! How fast the same went, over time: recordings that did the same, by commit.
//!
//! Speeds of different models or phases are never put together. Of what else differs, the question
//! says what to keep apart; what else was put together is counted.

use super::entry::{CatalogueEntry, MOST_LENGTHS, Speed};
use crate::phases::{PhaseKind, mean_and_deviation};
use crate::statistics::{ALARMS, mann_whitney, median};
use std::collections::{BTreeMap, BTreeSet};

/// A change is held against so many recordings before it, the newest ones since the last change.
const MOST_BEFORE: usize = 30;
/// And seen in so many from then on, if there are as many: of one recording, nothing is certain.
const LEAST_AFTER: usize = 5;

/// What recordings may differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dimension {
    /// Of ggml, with the libllama that came with it.
    Commit,
    Device,
    Program,
    Threads,
    /// Types of the cache, and whether flash attention is used.
    Cache,
    Cpu,
    /// Each recording for itself.
    File,
}

impl Dimension {
    pub const ALL: [Self; 7] = [
        Self::Commit,
        Self::Device,
        Self::Program,
        Self::Threads,
        Self::Cache,
        Self::Cpu,
        Self::File,
    ];

    /// What a recording is called in this respect; empty where it is not known.
    pub fn name(self, file: &str, entry: &CatalogueEntry) -> String {
        match self {
            Self::Commit => {
                let known = |text: &&&String| !text.is_empty() && text.as_str() != "unknown";
                let parts = [&entry.ggml_version, &entry.ggml_commit, &entry.llama];
                let parts: Vec<&str> = parts.iter().filter(known).map(|it| it.as_str()).collect();
                parts.join(" ")
            }
            Self::Device => entry.devices.clone(),
            Self::Program => entry.program.clone(),
            Self::Threads => entry.threads.map(|it| it.to_string()).unwrap_or_default(),
            Self::Cache => entry.model.cache(),
            Self::Cpu => entry.cpu.clone(),
            Self::File => file.rsplit('/').next().unwrap_or_default().to_owned(),
        }
    }
}

/// What is asked of a catalogue.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// What to keep apart.
    pub by: Vec<Dimension>,
    pub phase: Option<PhaseKind>,
    /// Texts that names have in them, whatever the case of the letters.
    pub named: Vec<(Dimension, String)>,
    pub model: Option<String>,
    pub since_unix_ns: Option<u64>,
    pub until_unix_ns: Option<u64>,
}

/// The same work on the same model.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub model: String,
    pub kind: PhaseKind,
    /// As llama-bench calls it; without a length if there are several.
    pub phase: String,
    /// What is kept apart, without the commit.
    pub names: Vec<(Dimension, String)>,
    /// By the first recording of each commit.
    pub points: Vec<CommitPoint>,
}

/// One commit, or all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitPoint {
    /// `None` where commits are not kept apart.
    pub commit: Option<String>,
    pub runs: Vec<RecordedSpeed>,
    /// Of the speeds of all recordings.
    pub median: f64,
    pub lowest: f64,
    pub highest: f64,
    /// Standard deviation of the recordings, or of the repetitions in the only one.
    pub deviation: Option<f64>,
    /// What was put together, with its only name, or with how many there are.
    pub others: Vec<(Dimension, Result<String, usize>)>,
    /// Against the recordings before, since the last change that was certain.
    pub change: Option<SpeedChange>,
}

/// A recording's part in a point.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedSpeed {
    /// Without its folder.
    pub file: String,
    pub at_unix_ns: Option<u64>,
    pub tokens_per_s: f64,
    pub deviation: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeedChange {
    /// Of the speed before.
    pub share: f64,
    /// It is more than noise, as far as the recordings can tell.
    pub is_certain: bool,
}

/// What series are told apart by, in the order in which they are shown: model, names, kind, length and
/// name of the phase; and the recording, if each is for itself, because files may have the same name.
type SeriesKey = (String, Vec<(Dimension, String)>, PhaseKind, u64, String, String);

struct Sample<'c> {
    file: &'c str,
    entry: &'c CatalogueEntry,
    tokens_per_s: f64,
    deviation: Option<f64>,
}

/// Answers for recordings with the names of their files.
pub fn series(recordings: &[(&str, &CatalogueEntry)], question: &Question) -> Vec<Series> {
    let chosen: Vec<_> =
        recordings.iter().filter(|(file, entry)| question.is_about(file, entry)).collect();
    let summed = kinds_of_many_lengths(chosen.iter().map(|(_, entry)| *entry));
    let mut samples: BTreeMap<SeriesKey, Vec<Sample<'_>>> = BTreeMap::new();
    for (file, entry) in &chosen {
        let names: Vec<_> = question
            .by
            .iter()
            .filter(|&&dimension| dimension != Dimension::Commit)
            .map(|&dimension| (dimension, dimension.name(file, entry)))
            .collect();
        for speed in speeds(entry, &summed, question.phase) {
            let length = speed.tokens / speed.repetitions.max(1);
            let length = if speed.label.is_empty() { 0 } else { length };
            let phase = phase_name(&speed);
            let own = question.keeps_apart(Dimension::File).then(|| entry.recording.clone());
            let own = own.unwrap_or_default();
            let key = (entry.model.name(), names.clone(), speed.kind, length, phase, own);
            let (tokens_per_s, deviation) = (speed.tokens_per_s, speed.deviation);
            let sample = Sample { file, entry, tokens_per_s, deviation };
            samples.entry(key).or_default().push(sample);
        }
    }
    let order = commits_by_time(&chosen);
    let one = |((model, names, kind, _, phase, _), samples): (SeriesKey, Vec<Sample<'_>>)| Series {
        model,
        kind,
        phase,
        names,
        points: points(samples, question, &order),
    };
    let mut series: Vec<Series> = samples.into_iter().map(one).collect();
    tell_changes(&mut series);
    series
}

impl Question {
    fn is_about(&self, file: &str, entry: &CatalogueEntry) -> bool {
        let has = |name: String, part: &str| name.to_lowercase().contains(&part.to_lowercase());
        let is_within = |at: u64| {
            self.since_unix_ns.is_none_or(|since| at >= since)
                && self.until_unix_ns.is_none_or(|until| at < until)
        };
        let asks_for_time = self.since_unix_ns.is_some() || self.until_unix_ns.is_some();
        self.named.iter().all(|(dimension, part)| has(dimension.name(file, entry), part))
            && self.model.as_ref().is_none_or(|part| has(entry.model.name(), part))
            && entry.recorded_at_unix_ns.map_or(!asks_for_time, is_within)
    }

    fn keeps_apart(&self, dimension: Dimension) -> bool {
        self.by.contains(&dimension)
    }
}

/// Phases of a kind that come in more lengths than anyone wants to see are taken together, model by
/// model.
fn kinds_of_many_lengths<'c>(
    entries: impl Iterator<Item = &'c CatalogueEntry>,
) -> BTreeSet<(String, PhaseKind)> {
    let mut labels: BTreeMap<(String, PhaseKind), BTreeSet<&str>> = BTreeMap::new();
    for entry in entries {
        for speed in &entry.speeds {
            labels.entry((entry.model.name(), speed.kind)).or_default().insert(&speed.label);
        }
    }
    let is_many = |labels: &BTreeSet<&str>| labels.len() > MOST_LENGTHS || labels.contains("");
    labels.into_iter().filter(|(_, labels)| is_many(labels)).map(|(key, _)| key).collect()
}

/// The speeds of a recording that can be told.
fn speeds(
    entry: &CatalogueEntry,
    summed: &BTreeSet<(String, PhaseKind)>,
    phase: Option<PhaseKind>,
) -> Vec<Speed> {
    let mut all: Vec<Speed> = Vec::new();
    let is_asked = |speed: &&Speed| phase.is_none_or(|kind| kind == speed.kind);
    let is_known = |speed: &&Speed| speed.tokens_per_s.is_finite() && speed.tokens_per_s > 0.0;
    for speed in entry.speeds.iter().filter(is_asked).filter(is_known) {
        if !summed.contains(&(entry.model.name(), speed.kind)) {
            all.push(speed.clone());
            continue;
        }
        let label = String::new();
        match all.iter_mut().find(|it| it.kind == speed.kind) {
            Some(sum) => add(sum, speed),
            None => all.push(Speed { label, ..speed.clone() }),
        }
    }
    all
}

/// The mean of both, as if they were repetitions of the same.
fn add(sum: &mut Speed, more: &Speed) {
    let (one, other) = (sum.repetitions.max(1) as f64, more.repetitions.max(1) as f64);
    sum.tokens_per_s = (sum.tokens_per_s * one + more.tokens_per_s * other) / (one + other);
    sum.repetitions = sum.repetitions.saturating_add(more.repetitions);
    sum.tokens = sum.tokens.saturating_add(more.tokens);
    sum.is_guess |= more.is_guess;
    // How far they are apart cannot be told from the two deviations alone.
    sum.deviation = None;
}

fn phase_name(speed: &Speed) -> String {
    let name = match (speed.label.as_str(), speed.kind) {
        ("", PhaseKind::Prompt) => "pp",
        ("", PhaseKind::Generation) => "tg",
        ("", PhaseKind::Mixed) => "mixed",
        ("", PhaseKind::Encoding) => "enc",
        ("", PhaseKind::Draft) => "draft",
        ("", PhaseKind::WarmUp) => "warm-up",
        ("", PhaseKind::Graph) => "graphs",
        (label, _) => label,
    };
    name.to_owned()
}

/// The place of each commit, by its first recording; those without a time come last.
fn commits_by_time(recordings: &[&(&str, &CatalogueEntry)]) -> BTreeMap<String, usize> {
    let mut first: BTreeMap<String, u64> = BTreeMap::new();
    for (file, entry) in recordings {
        let at = entry.recorded_at_unix_ns.unwrap_or(u64::MAX);
        let known = first.entry(Dimension::Commit.name(file, entry)).or_insert(at);
        *known = at.min(*known);
    }
    let mut order: Vec<(u64, String)> = first.into_iter().map(|(name, at)| (at, name)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, name)| name).zip(0..).collect()
}

fn points(
    samples: Vec<Sample<'_>>,
    question: &Question,
    order: &BTreeMap<String, usize>,
) -> Vec<CommitPoint> {
    let mut commits: BTreeMap<usize, (Option<String>, Vec<Sample<'_>>)> = BTreeMap::new();
    for sample in samples {
        let commit = question
            .keeps_apart(Dimension::Commit)
            .then(|| Dimension::Commit.name(sample.file, sample.entry));
        let place = commit.as_ref().and_then(|name| order.get(name)).copied().unwrap_or(0);
        commits.entry(place).or_insert_with(|| (commit, Vec::new())).1.push(sample);
    }
    commits.into_values().map(|(commit, samples)| point(commit, samples, question)).collect()
}

/// Of at least one recording.
fn point(commit: Option<String>, mut samples: Vec<Sample<'_>>, question: &Question) -> CommitPoint {
    samples.sort_by_key(|sample| sample.entry.recorded_at_unix_ns.unwrap_or(u64::MAX));
    let speeds: Vec<f64> = samples.iter().map(|sample| sample.tokens_per_s).collect();
    let deviation = match &samples[..] {
        [only] => only.deviation,
        _ => mean_and_deviation(&speeds).map(|(_, deviation)| deviation),
    };
    let name_of = |dimension: Dimension| -> BTreeSet<String> {
        samples.iter().map(|sample| dimension.name(sample.file, sample.entry)).collect()
    };
    let others = Dimension::ALL.into_iter().filter(|&it| !question.keeps_apart(it));
    let others = others.map(|dimension| {
        let mut names = name_of(dimension);
        let only = if names.len() == 1 { names.pop_first() } else { None };
        (dimension, only.ok_or(names.len()))
    });
    let run = |sample: &Sample<'_>| RecordedSpeed {
        file: Dimension::File.name(sample.file, sample.entry),
        at_unix_ns: sample.entry.recorded_at_unix_ns,
        tokens_per_s: sample.tokens_per_s,
        deviation: sample.deviation,
    };
    CommitPoint {
        commit,
        median: median(&speeds),
        lowest: speeds.iter().copied().fold(f64::INFINITY, f64::min),
        highest: speeds.iter().copied().fold(0.0, f64::max),
        deviation,
        others: others.collect(),
        runs: samples.iter().map(run).collect(),
        change: None,
    }
}

/// From commit to commit, held against chance; each look has its part of the false alarms.
fn tell_changes(series: &mut [Series]) {
    let looks: usize = series.iter().map(|one| one.points.len().saturating_sub(1)).sum();
    let alarms = ALARMS / looks.max(1) as f64;
    for one in series {
        let mut since = 0;
        for at in 1..one.points.len() {
            let change = change(&one.points, since, at, alarms);
            if change.is_certain {
                since = at;
            }
            one.points[at].change = Some(change);
        }
    }
}

/// From the points between `since` and `at` to the one there. It lasts if those that follow agree, and
/// it is the first that has most of it.
fn change(points: &[CommitPoint], since: usize, at: usize, alarms: f64) -> SpeedChange {
    let speeds = |points: &[CommitPoint]| -> Vec<f64> {
        points.iter().flat_map(|it| &it.runs).map(|run| run.tokens_per_s).collect()
    };
    let before = speeds(&points[since..at]);
    let before = &before[before.len().saturating_sub(MOST_BEFORE)..];
    let enough = (at + 1..points.len()).find(|&end| speeds(&points[at..end]).len() >= LEAST_AFTER);
    let after = speeds(&points[at..enough.unwrap_or(points.len())]);
    let usual = median(before);
    let (share, lasting) = (points[at].median / usual - 1.0, median(&after) / usual - 1.0);
    let is_here = share * lasting > 0.0 && share.abs() >= lasting.abs() / 2.0;
    SpeedChange { share, is_certain: is_here && mann_whitney(before, &after) <= alarms }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speed(label: &str, tokens_per_s: f64) -> Speed {
        let kind = if label.starts_with("pp") { PhaseKind::Prompt } else { PhaseKind::Generation };
        let (label, is_guess, deviation) = (label.to_owned(), false, None);
        let tokens = label[2..].parse().unwrap_or(0);
        Speed { label, kind, is_guess, repetitions: 1, tokens, tokens_per_s, deviation }
    }

    fn entry(commit: &str, device: &str, at: u64, speeds: Vec<Speed>) -> CatalogueEntry {
        CatalogueEntry {
            recorded_at_unix_ns: Some(at),
            ggml_commit: commit.to_owned(),
            devices: device.to_owned(),
            speeds,
            ..CatalogueEntry::default()
        }
    }

    fn asked(entries: &[CatalogueEntry], question: &Question) -> Vec<Series> {
        let named: Vec<(&str, &CatalogueEntry)> =
            entries.iter().map(|entry| ("a/b.ggprof", entry)).collect();
        series(&named, question)
    }

    fn by(by: &[Dimension]) -> Question {
        Question { by: by.to_vec(), ..Question::default() }
    }

    const BY: [Dimension; 2] = [Dimension::Commit, Dimension::Device];

    #[test]
    fn a_change_that_five_recordings_show_is_certain() {
        let recorded = |commit: &str, day: u64, base: f64| -> Vec<CatalogueEntry> {
            let one = |at: u64| entry(commit, "A", day + at, vec![speed("tg8", base + at as f64)]);
            (0..5).map(one).collect()
        };
        // `b` has the later name and came first.
        let entries = [recorded("a", 200, 90.0), recorded("b", 100, 100.0)].concat();
        let [found] = &asked(&entries, &by(&BY))[..] else { panic!() };
        let points: Vec<_> = found
            .points
            .iter()
            .map(|it| (it.commit.as_deref(), it.median, it.runs.len()))
            .collect();
        assert_eq!(points, [(Some("b"), 102.0, 5), (Some("a"), 92.0, 5)]);
        let change = found.points[1].change.unwrap();
        assert!(change.is_certain && (change.share + 10.0 / 102.0).abs() < 1e-9, "{change:?}");
        assert_eq!((found.points[1].lowest, found.points[1].highest), (90.0, 94.0));
        // Two recordings cannot tell.
        let few = [&entries[..2], &entries[5..7]].concat();
        assert!(!asked(&few, &by(&BY))[0].points[1].change.unwrap().is_certain);
    }

    /// One recording of each commit: a step is seen where it is, once enough have followed.
    #[test]
    fn a_step_of_single_recordings() {
        let recorded = |at: u64| {
            let speed = if at < 20 { 100 } else { 90 } + at * 7 % 5;
            let name = format!("{at}");
            entry(&name, "A", at, vec![self::speed("tg8", speed as f64)])
        };
        let entries: Vec<CatalogueEntry> = (0..30).map(recorded).collect();
        let certain = |entries: &[CatalogueEntry]| -> Vec<String> {
            let points = asked(entries, &by(&BY)).remove(0).points;
            let is_certain = |point: &CommitPoint| point.change.is_some_and(|it| it.is_certain);
            points.into_iter().filter(is_certain).filter_map(|it| it.commit).collect()
        };
        assert_eq!(certain(&entries), ["20"]);
        assert_eq!(certain(&entries[..21]), [""; 0]);
    }

    #[test]
    fn files_of_the_same_name_stay_two() {
        let mut entries = [0, 1].map(|at| entry("a", "A", at, vec![speed("tg8", 1.0)]));
        entries[1].recording = "other".to_owned();
        assert_eq!(asked(&entries, &by(&[Dimension::File])).len(), 2);
        assert_eq!(asked(&entries, &by(&[Dimension::Device])).len(), 1);
    }

    #[test]
    fn what_differs_is_kept_apart_or_counted() {
        let entries = [
            entry("a", "A", 1, vec![speed("pp512", 9.0), speed("pp64", 8.0), speed("tg8", 1.0)]),
            entry("a", "B", 2, vec![speed("tg8", 3.0)]),
        ];
        let shown = |series: &[Series]| -> Vec<String> {
            series.iter().map(|it| format!("{} {}", it.phase, it.points[0].median)).collect()
        };
        let apart = asked(&entries, &by(&BY));
        assert_eq!(shown(&apart), ["pp64 8", "pp512 9", "tg8 1", "tg8 3"]);
        let together = asked(&entries, &by(&[Dimension::Commit]));
        assert_eq!(shown(&together), ["pp64 8", "pp512 9", "tg8 2"]);
        let other = |series: &Series| series.points[0].others[0].clone();
        assert_eq!(other(&together[0]), (Dimension::Device, Ok("A".to_owned())));
        assert_eq!(other(&together[2]), (Dimension::Device, Err(2)));
        let question = Question {
            phase: Some(PhaseKind::Generation),
            named: vec![(Dimension::Device, "b".to_owned())],
            since_unix_ns: Some(2),
            ..by(&BY)
        };
        assert_eq!(shown(&asked(&entries, &question)), ["tg8 3"]);
        assert!(asked(&entries, &Question { until_unix_ns: Some(2), ..question }).is_empty());
    }

    #[test]
    fn many_lengths_become_one() {
        let lengths = |range: std::ops::Range<u64>| -> Vec<Speed> {
            range.map(|length| speed(&format!("tg{length}"), length as f64)).collect()
        };
        let entries = [entry("a", "A", 1, lengths(1..6)), entry("a", "A", 2, lengths(6..10))];
        let [all] = &asked(&entries, &by(&BY))[..] else { panic!() };
        assert_eq!((all.phase.as_str(), all.points[0].runs.len()), ("tg", 2));
        assert_eq!((all.points[0].lowest, all.points[0].highest), (3.0, 7.5));
    }
}
