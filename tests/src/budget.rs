//! Whether what `ggprof explain` says of a recording adds up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::asked::{ask, list};
use crate::built;

/// The budgets of a recording's phases, whatever state it is in: the rows of each add up to its wall
/// time. Panics where they do not. With `GGPROF_SUMS=1`, the sums of its events are compared as well.
pub fn check(recording: &Path) {
    let mut command = Command::new(built::ggprof());
    let output = command.arg("explain").arg(recording).args(["--format", "json"]).output();
    let output = output.expect("ggprof starts");
    // 3: something is missing from the recording. 1: there is nothing to read.
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{output:?}");
    if let Ok(explained) = serde_json::from_slice(&output.stdout) {
        check_rows(&explained);
        let wants_sums = std::env::var("GGPROF_SUMS").is_ok_and(|value| value == "1");
        if wants_sums && output.status.code() == Some(0) && !check_events(recording) {
            eprintln!("{}: {NOT_COMPARED}", recording.display());
        }
    }
}

/// The same of an answer in JSON; how many phases there are.
pub fn check_rows(explained: &Value) -> usize {
    let mut phases: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for row in list(explained, "budget") {
        let number = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("no {key}: {row}"));
        let phase = phases.entry(row["phase"].as_str().unwrap_or_default()).or_default();
        *phase = (phase.0 + number("ns"), number("wall_ns"));
    }
    for (phase, (sum_ns, wall_ns)) in &phases {
        assert_eq!(sum_ns, wall_ns, "{phase} in {explained:#}");
    }
    phases.len()
}

type Spans = Vec<(u64, u64)>;

/// What to say where [`check_events`] gives `false`.
pub const NOT_COMPARED: &str = "graph runs overlap, so no simple sum of events is that of a phase: only its rows were added up";

/// Somebody else's sum of what happened in each phase, as the exported events have it: the time in which a
/// kernel ran, or an op without kernels, on devices first; then on the host, where no device computed; then
/// copies where nothing computed; then waits for results where nothing was copied. `false` where graph runs
/// overlap, of which each phase has its own time.
#[must_use]
pub fn check_events(recording: &Path) -> bool {
    let directory = TempDir::new().expect("a directory");
    let json = directory.path().join("events.json");
    let mut convert = Command::new(built::ggprof());
    let output = convert.arg("convert").arg(recording).arg("-o").arg(&json).output();
    assert!(output.expect("ggprof starts").status.success());
    let exported = std::fs::read(&json).expect("events");
    let exported: Value = serde_json::from_slice(&exported).expect("JSON");
    let by_run = ask(&[recording], &["report", "--by", "run"]);
    if is_overlapping(&exported) {
        return false;
    }
    let explained = ask(&[recording], &["explain"]);
    for (label, budget) in by_phase(&explained) {
        let runs = runs_of(&by_run, label);
        let [on_devices, on_host] = computed(&exported, &runs);
        let devices = covered(on_devices.clone());
        let computing = [on_devices, on_host].concat();
        let both = covered(computing.clone());
        let sum = |wanted: &dyn Fn(&Value) -> bool, key: &str| -> u64 {
            let rows = budget.iter().filter(|row| wanted(row));
            rows.filter_map(|row| row[key].as_u64()).sum()
        };
        let is_device = |row: &Value| row["spent"] == "computing" && row["backend"] != "CPU";
        let is_host = |row: &Value| {
            row["spent"] == "unequal_threads"
                || (row["spent"] == "computing" && row["backend"] == "CPU")
        };
        // Of splits that were timed as a whole, the part in which the device waits is estimated; and what
        // a kernel's first use took longer than later ones is not computing.
        let waiting = sum(&|row| row["spent"] == "launching", "estimated_ns");
        let loading = sum(&|row| row["spent"] == "first_use", "ns");
        let least = sum(&is_device, "ns") + waiting;
        assert!((least..=least + loading).contains(&devices), "{label}: {devices}, {least}");
        assert_eq!(sum(&is_host, "ns"), both - devices, "the host in {label}");
        let is_copying =
            |row: &Value| row["spent"].as_str().is_some_and(|it| it.starts_with("copying"));
        let copies = Copies::of(&exported, &runs, &times_of(&by_run, label));
        let copied = |more: &[&Spans]| beside(&computing, &copies.timed, more);
        let between = copied(&[])..=copied(&[&copies.perhaps]);
        let copying = sum(&is_copying, "ns");
        assert!(between.contains(&copying), "copies in {label}: {copying}, {between:?}");
        // Calls that start work come before waits.
        let waiting = sum(&|row| row["spent"] == "waiting_for_device", "ns");
        let before = [computing, copies.timed].concat();
        let most = beside(&before, &waits(&exported, &runs, &last_runs_of(&by_run, &runs)), &[]);
        assert!(waiting <= most, "waits in {label}: {waiting}, at most {most}");
    }
    true
}

fn by_phase(explained: &Value) -> BTreeMap<&str, Vec<&Value>> {
    let mut phases: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for row in list(explained, "budget") {
        phases.entry(row["phase"].as_str().expect("its phase")).or_default().push(row);
    }
    phases
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn is_overlapping(exported: &Value) -> bool {
    let runs = list(&exported["ggprof"], "graph_runs").iter();
    let mut runs: Spans = runs.map(|run| (number(&run[1]), number(&run[2]))).collect();
    runs.sort_unstable();
    runs.windows(2).any(|pair| pair[1].0 < pair[0].1)
}

/// The places of a phase's graph runs, or of those of a kind: `prompt` has `pp20` and `pp512`.
fn runs_of(by_run: &Value, label: &str) -> BTreeSet<u64> {
    const KINDS: [(&str, &str); 5] = [
        ("prompt", "pp"),
        ("generation", "tg"),
        ("mixed", "mixed"),
        ("encoding", "enc"),
        ("draft", "draft"),
    ];
    let kind = KINDS.iter().find(|(name, _)| *name == label);
    let is_its = |run: &Value| match (kind, run["phase"].as_str()) {
        (Some((_, beginning)), Some(phase)) => phase.starts_with(beginning),
        (None, phase) => phase == Some(label),
        _ => false,
    };
    let runs = (0..).zip(list(by_run, "runs"));
    let runs: BTreeSet<u64> = runs.filter(|(_, run)| is_its(run)).map(|(place, _)| place).collect();
    assert!(!runs.is_empty(), "{label} in {by_run:#}");
    runs
}

/// What computed in these runs, on devices and on the host.
fn computed(exported: &Value, runs: &BTreeSet<u64>) -> [Spans; 2] {
    let is_host = |backend: &Value| {
        let backend = list(exported, "backends").iter().find(|it| it["id"] == *backend);
        backend.expect("its backend")["device_type"] == 0
    };
    let (mut with_kernels, mut spans) = (BTreeSet::new(), [Spans::new(), Spans::new()]);
    let records = list(exported, "records");
    let is_wanted = |record: &Value| {
        let run = record["graph_run"].as_u64();
        record["type"] == 0
            && record["measured"] != "host_call"
            && run.is_some_and(|run| runs.contains(&run))
    };
    for work in list(&exported["ggprof"], "device_work") {
        let (record, start, duration) = (number(&work[0]), number(&work[4]), number(&work[5]));
        with_kernels.insert(record);
        if is_wanted(&records[record as usize]) {
            spans[0].push((start, start + duration));
        }
    }
    for (place, record) in (0..).zip(records) {
        if is_wanted(record) && !with_kernels.contains(&place) {
            let start = number(&record["start_ns"]);
            let side = usize::from(is_host(&record["backend_id"]));
            spans[side].push((start, start + number(&record["duration_ns"])));
        }
    }
    spans
}

/// From the start of a phase's first graph run to that of its last, each time that it comes: what is read
/// then belongs to it for sure.
fn times_of(by_run: &Value, label: &str) -> Spans {
    let runs = list(by_run, "runs");
    let of_label = runs.chunk_by(|one, next| one["phase"] == next["phase"]);
    let start = |run: &Value| number(&run["start_ns"]);
    let its = of_label.filter(|runs| runs[0]["phase"] == label);
    its.map(|runs| (start(&runs[0]), start(&runs[runs.len() - 1]))).collect()
}

/// Copies of a phase.
#[derive(Default)]
struct Copies {
    timed: Spans,
    /// Those that are timed unless the device times such copies itself, and those of no graph run that may
    /// be another phase's.
    perhaps: Spans,
}

impl Copies {
    fn of(exported: &Value, runs: &BTreeSet<u64>, times: &Spans) -> Self {
        let mut by_device: BTreeMap<u64, Spans> = BTreeMap::new();
        for work in list(&exported["ggprof"], "device_work") {
            let (start, duration) = (number(&work[4]), number(&work[5]));
            by_device.entry(number(&work[0])).or_default().push((start, start + duration));
        }
        let mut copies = Self::default();
        for (place, copy) in (0..).zip(list(exported, "records")) {
            let run = copy["graph_run"].as_u64();
            if copy["type"] != 1
                || copy["measured"] == "host_call"
                || run.is_some_and(|run| !runs.contains(&run))
            {
                continue;
            }
            let (start, duration) = (number(&copy["start_ns"]), number(&copy["duration_ns"]));
            let is_its =
                run.is_some() || times.iter().any(|&(from, to)| (from..to).contains(&start));
            let is_sure = is_its && copy["measured"] != "host";
            let list = if is_sure { &mut copies.timed } else { &mut copies.perhaps };
            match by_device.get(&place) {
                Some(spans) => list.extend(spans),
                None => list.push((start, start + duration)),
            }
        }
        copies
    }
}

/// Where a device tells when it was done, a phase is over with that: the program may wait for a moment longer
/// until it is woken up.
fn waits(exported: &Value, runs: &BTreeSet<u64>, last_runs: &BTreeSet<u64>) -> Spans {
    let tasks = exported["ggprof"]["host_tasks"].as_array().into_iter().flatten();
    let waits = tasks.filter(|task| task[0] == "Wait");
    let of_run =
        waits.filter_map(|task| Some((task, task[3].as_u64().filter(|it| runs.contains(it))?)));
    let times = of_run.map(|(task, run)| {
        let (start, end) = (number(&task[4]), number(&task[4]) + number(&task[5]));
        let over = last_runs.contains(&run).then(|| told_end(exported, run)).flatten();
        (start, over.map_or(end, |over| end.min(over.max(start))))
    });
    times.collect()
}

/// The last run of a phase, each time that it comes.
fn last_runs_of(by_run: &Value, its: &BTreeSet<u64>) -> BTreeSet<u64> {
    let runs: Vec<(u64, &Value)> = (0..).zip(list(by_run, "runs")).collect();
    let together = runs.chunk_by(|one, next| one.1["phase"] == next.1["phase"]);
    let last = together.filter_map(|runs| Some(runs.last()?.0));
    last.filter(|run| its.contains(run)).collect()
}

/// When all that a graph run computed was over; `None` where only calls that start it are known.
fn told_end(exported: &Value, run: u64) -> Option<u64> {
    let of_run = |record: &&Value| record["graph_run"].as_u64() == Some(run);
    let records = || list(exported, "records").iter().filter(of_run);
    if records().any(|record| record["measured"] == "host_call") {
        return None;
    }
    let end = |record: &Value| number(&record["start_ns"]) + number(&record["duration_ns"]);
    let runs = list(&exported["ggprof"], "graph_runs");
    records().map(end).chain([number(&runs[run as usize][2])]).max()
}

/// How long some spans, and more of them, were going on while the first ones were not.
fn beside(first: &Spans, spans: &Spans, more: &[&Spans]) -> u64 {
    let mut all = [&first[..], spans].concat();
    more.iter().for_each(|more| all.extend(*more));
    covered(all) - covered(first.clone())
}

/// How long at least one of them was going on.
fn covered(mut spans: Spans) -> u64 {
    spans.sort_unstable();
    let (mut sum, mut until) = (0, 0);
    for (start, end) in spans {
        sum += end.saturating_sub(start.max(until));
        until = until.max(end);
    }
    sum
}
