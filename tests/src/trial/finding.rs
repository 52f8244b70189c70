//! Running a program with and without the agent, and what that shows.

use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::time::Duration;

use ggprof_spool::layout::{Covered, CoveredHow};
use ggprof_spool::names;
use ggprof_spool::record::Op;

use super::{Computes, Trial};
use crate::recording::{Recording, Split, way};
use crate::under_agent::UnderAgent;
use crate::{built, ended};

/// All of them end in less than a second.
const LIMIT: Duration = Duration::from_secs(60);

/// What was found.
#[derive(Debug, Default)]
pub struct Finding {
    /// Nodes of the graphs that do work, and how many of them are in the recording.
    pub nodes: usize,
    pub recorded: usize,
    pub graph_runs: usize,
    lost: u64,
    /// How many threads took part in graphs.
    pub(super) threads: BTreeSet<u16>,
    /// Ops that last longer than until the next one begins: ggml computes one after the other.
    pub(super) overlaps: usize,
    /// The way by which ops are seen, for each backend.
    pub ways: Vec<String>,
    /// Why something is not seen, in the recording or in words of the agent or of `ggprof run`.
    pub reasons: Vec<String>,
    /// How it ended under the agent, if otherwise than without.
    pub ended: Option<String>,
    pub same_output: bool,
}

impl Trial {
    /// Runs it. An error is the reason why that is not possible here.
    pub fn find(&self) -> Result<Finding, String> {
        let plain = ended::within(LIMIT, &mut (self.command)()?)?;
        if !plain.status.success() {
            return Err(format!("without the agent: {plain:?}"));
        }
        let mut program = UnderAgent::of((self.command)()?);
        let mut finding = Finding::default();
        match ended::within(LIMIT, &mut program.command) {
            Ok(recorded) => finding.compare(&plain, &recorded),
            Err(hangs) => finding.ended = Some(hangs),
        }
        program.recordings().iter().for_each(|recording| finding.count(recording));
        if !finding.is_complete(self.computes) && finding.ended.is_none() {
            finding.reasons.extend(words_of_run((self.command)()?)?);
        }
        Ok(finding)
    }
}

impl Finding {
    pub(super) fn is_complete(&self, computes: Computes) -> bool {
        self.lost == 0
            && self.graph_runs == computes.graphs
            && computes.nodes.is_none_or(|nodes| nodes == self.nodes)
            && self.nodes > 0
            && self.nodes == self.recorded
    }

    fn compare(&mut self, plain: &Output, recorded: &Output) {
        if plain.status != recorded.status {
            let words = String::from_utf8_lossy(&recorded.stderr);
            let last = words.lines().rev().take(2).collect::<Vec<_>>().join(" / ");
            self.ended = Some(format!("it ended with {}: {last}", recorded.status));
        }
        self.same_output = plain.stdout == recorded.stdout;
        self.reasons.extend(words_of_ggprof(recorded));
    }

    fn count(&mut self, recording: &Recording) {
        self.lost += recording.lost() + recording.damage.len() as u64;
        self.graph_runs += recording.completed_runs().count();
        for split in recording.splits.values() {
            let working = recording.working_positions(split);
            self.recorded += working.intersection(&recording.recorded_positions(split)).count();
            self.nodes += working.len();
            self.overlaps += overlaps(split);
            self.threads.extend(split.end.as_ref().map(|end| end.threads));
        }
        for covered in &recording.coverage {
            if covered.what == Covered::Ops as u16 {
                let way = way(covered.how).to_owned();
                if !self.ways.contains(&way) {
                    self.ways.push(way);
                }
            }
            let reason = recording.why(covered);
            if covered.how == CoveredHow::Not as u8 && !self.reasons.contains(&reason) {
                self.reasons.push(reason);
            }
        }
    }
}

/// A processor may read its counter while it still waits for the memory by which it learns that
/// the others are ready. Of a million ops, a thousand began some ten ticks before the last thread
/// had ended the op before, one began nine hundred before.
const OUT_OF_ORDER: u64 = 4096;

fn overlaps(split: &Split) -> usize {
    let mut ops: Vec<&Op> = split.ops.iter().collect();
    ops.sort_by_key(|op| op.position);
    let overlaps = |pair: &&[&Op]| {
        let slack = pair[0].resolution.max(pair[1].resolution) + OUT_OF_ORDER;
        pair[0].start + pair[0].duration > pair[1].start + slack
    };
    ops.windows(2).filter(overlaps).count()
}

/// The cells of a table: nodes, recorded, how, same output, end.
impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = if self.recorded == self.nodes && self.nodes > 0 {
            self.ways.join(", ")
        } else {
            self.reasons.join("; ")
        };
        let same = if self.same_output { "yes" } else { "NO" };
        let end = self.ended.as_deref().unwrap_or("as without");
        write!(f, "{} | {} | {how} | {same} | {end}", self.nodes, self.recorded)
    }
}

/// What `ggprof run` has to say of the program.
fn words_of_run(command: Command) -> Result<Vec<String>, String> {
    let mut run = Command::new(built::ggprof());
    run.args(["run", "--"]).arg(command.get_program()).args(command.get_args());
    run.env_remove("LD_PRELOAD").env_remove(names::SPOOL);
    ended::within(LIMIT, &mut run).map(|output| words_of_ggprof(&output))
}

/// What the agent and the command said, and what stands at the head of a report.
fn words_of_ggprof(output: &Output) -> Vec<String> {
    let words = [&output.stdout, &output.stderr].map(|words| String::from_utf8_lossy(words));
    let is_ours = |line: &&str| ["ggprof: ", "! "].iter().any(|mark| line.starts_with(mark));
    words.iter().flat_map(|words| words.lines().filter(is_ours)).map(str::to_owned).collect()
}
