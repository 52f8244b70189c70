//! Recordings written as text, for the tests of rules.

use super::{Explained, Finding, Rule, explained};
use crate::budget::divided;
use crate::layers::places;
use crate::node_sums::NodeSums;
use crate::peaks::Peaks;
use crate::phases::phases;
use ggprof_trace::{Trace, text_fixture};

pub(super) fn explain(trace: &Trace) -> Explained {
    explain_on(trace, None)
}

/// The same on a machine that was measured.
pub(super) fn explain_on(trace: &Trace, peaks: Option<&Peaks>) -> Explained {
    let (phases, places) = (phases(trace), places(trace));
    let sums = NodeSums::by_budget(trace, &phases);
    explained(trace, &phases, &places, &sums, &divided(trace, &phases, &places), peaks)
}

/// What is worth a change in a recording, the most expensive first. A device `GPU` and the host `CPU`
/// are there.
pub(super) fn found(text: &str) -> Vec<Finding> {
    found_in(&parse(text))
}

pub(super) fn found_in(trace: &Trace) -> Vec<Finding> {
    explain(trace).worth_a_change().cloned().collect()
}

pub(super) fn parse(text: &str) -> Trace {
    text_fixture::parse(&format!("backend 0 GPU gpu\nbackend 1 CPU cpu\n{text}"))
}

/// The rule fires first, at this cost; and nothing of it is left where its cause is not there.
#[track_caller]
pub(super) fn check(rule: Rule, fires: &str, cost_ns: u64, silent: &str) -> Finding {
    let found = self::found(fires);
    let first = found.first().unwrap_or_else(|| panic!("nothing was found"));
    assert_eq!((first.rule, first.cost_ns), (rule, cost_ns), "{found:#?}");
    let left = self::found(silent);
    assert!(left.iter().all(|finding| finding.rule != rule), "{left:#?}");
    first.clone()
}

/// Generation of some tokens: what is in each, which takes `every_ns`. `@` stands for the run, and
/// times are offsets.
pub(super) fn tokens(count: u64, every_ns: u64, call_ns: u64, ops: &str) -> String {
    let mut text = String::new();
    for token in 0..count {
        let start = token * every_ns;
        let position = 10 + token;
        text += &format!("batch {start}..{} 0:{position}+1!1\n", start + call_ns);
        text += &format!("run {start}..{} batch={token}\n", start + call_ns);
    }
    for token in 0..count {
        for line in ops.lines() {
            text += &shifted(line, token, token * every_ns);
            text.push('\n');
        }
    }
    text
}

/// The same where the device's ops are known of every other run only, as with samples. In each run the device
/// has one op.
pub(super) fn in_samples(text: &str) -> String {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let run = words.iter().find_map(|word| word.strip_prefix("run=")?.parse::<u64>().ok());
        let is_op = words.len() > 5 && words[..2] == ["op", "GPU"];
        match run.filter(|_| is_op) {
            Some(run) if run % 2 == 1 => {
                let (times, name, output) = (words[3], words[4], words[5]);
                format!(
                    "op GPU SPLIT {times} {name} {output} <- {output} run={run} measured=device\n"
                )
            }
            Some(_) => format!("{line} measured=device\n"),
            None => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

fn shifted(line: &str, run: u64, by_ns: u64) -> String {
    let word = |word: &str| match word.split_once("..") {
        Some((start, end)) => {
            let moved = |text: &str| text.parse::<u64>().expect("a time") + by_ns;
            format!("{}..{}", moved(start), moved(end))
        }
        None => word.replace('@', &run.to_string()),
    };
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}
