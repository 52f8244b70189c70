//! What a program printed, without what differs from run to run.

use std::collections::BTreeMap;

/// Words that tell times.
const VOLATILE: [&str; 2] = ["seconds=", "median_ns="];

/// Lines and how often each came: threads print in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Output(BTreeMap<String, usize>);

impl Output {
    pub(super) fn of(text: &str) -> Output {
        let mut lines = BTreeMap::new();
        for line in text.lines() {
            let stays = |word: &&str| !VOLATILE.iter().any(|start| word.starts_with(start));
            let line = line.split(' ').filter(stays).collect::<Vec<_>>().join(" ");
            *lines.entry(line).or_default() += 1;
        }
        Output(lines)
    }

    /// Whether it may come from the same program, ended before all was printed.
    pub(super) fn is_part_of(&self, whole: &Output) -> bool {
        let mut lines = self.0.iter();
        lines.all(|(line, count)| whole.0.get(line).is_some_and(|all| all >= count))
    }

    /// What either has.
    pub(super) fn or(mut self, other: Output) -> Output {
        for (line, count) in other.0 {
            let own = self.0.entry(line).or_default();
            *own = count.max(*own);
        }
        self
    }

    /// Graphs that the workload said were computed.
    pub(super) fn announced(&self) -> usize {
        let graphs = self.0.iter().filter(|(line, _)| line.starts_with("computed "));
        graphs.map(|(_, count)| count).sum()
    }
}
