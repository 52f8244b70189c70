//! Running a row of the matrix with and without the agent, and what that shows.

use std::process::{Command, Output};

use ggprof_spool::layout::{Covered, CoveredHow};
use ggprof_spool::names;

use super::{Row, Speed};
use crate::recording::{Recording, way};
use crate::under_agent::UnderAgent;

/// What was found.
#[derive(Debug, Default)]
pub struct Finding {
    /// Nodes of the graphs that do work, on backends whose ops can be seen.
    pub expected: usize,
    pub recorded: usize,
    pub lost: u64,
    /// The way by which each backend's ops are seen.
    pub ways: Vec<String>,
    /// How it ended under the agent, if not well.
    failed: Option<String>,
    pub same_result: Option<bool>,
    /// Speeds without and with the agent, for each pair of runs but the first, which finds
    /// files that are not in memory yet.
    pub speeds: Vec<(f64, f64)>,
}

impl Row {
    /// Runs the program so many times without and with the agent, in turns. An error is the
    /// reason why that is not possible here.
    pub fn find(&self, pairs: usize) -> Result<Finding, String> {
        let mut finding = Finding::default();
        for pair in 0..pairs {
            // The second run may find the machine warmer, or hotter.
            let recorded_first = (pair % 2 == 1).then(|| self.record(&mut finding)).transpose()?;
            let plain = run((self.command)()?)?;
            let recorded = recorded_first.map_or_else(|| self.record(&mut finding), Ok)?;
            let speeds = self.speed(&plain).zip(self.speed(&recorded));
            finding.speeds.extend(speeds.filter(|_| pair > 0));
            if self.has_result {
                let same = last_line(&plain) == last_line(&recorded);
                finding.same_result = Some(same && finding.same_result != Some(false));
            }
        }
        Ok(finding)
    }

    fn record(&self, finding: &mut Finding) -> Result<Output, String> {
        let mut program = UnderAgent::with((self.command)()?, &self.platform.agent()?);
        let output = program.run();
        finding.failed = finding.failed.take().or(check(&output).err());
        program.recordings().iter().for_each(|recording| finding.count(recording));
        Ok(output)
    }

    /// What is wrong with what was found.
    pub fn complaint(&self, finding: &Finding) -> Option<String> {
        let tier = format!("CPU {}", self.tier);
        if let Some(end) = &finding.failed {
            Some(format!("recorded, it ended with {end}"))
        } else if !finding.is_complete() {
            Some("not every node was recorded".to_owned())
        } else if finding.same_result == Some(false) {
            Some("it did not compute the same".to_owned())
        } else if !finding.ways.contains(&tier) {
            Some(format!("its ops were not seen by tier {}", self.tier))
        } else {
            None
        }
    }

    /// Greater is faster.
    fn speed(&self, output: &Output) -> Option<f64> {
        let (Speed::Rate(key) | Speed::Time(key)) = self.speed else { return None };
        let number = [&output.stdout, &output.stderr].into_iter().find_map(|text| {
            let text = String::from_utf8_lossy(text).into_owned();
            let rest = text.rsplit_once(key)?.1.trim_start();
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            rest[..end].parse::<f64>().ok().filter(|number| *number > 0.0)
        })?;
        Some(if matches!(self.speed, Speed::Rate(_)) { number } else { 1.0 / number })
    }
}

impl Finding {
    fn count(&mut self, recording: &Recording) {
        self.lost += recording.lost() + recording.damage.len() as u64;
        for covered in recording.coverage.iter().filter(|c| c.what == Covered::Ops as u16) {
            let backend = recording.backends.iter().find(|b| b.backend == covered.backend);
            let name = backend.map_or("", |backend| recording.text(backend.name));
            let way = format!("{name} {}", way(covered.how));
            if !self.ways.contains(&way) {
                self.ways.push(way);
            }
            // Of devices, ops are seen in samples.
            if [CoveredHow::Not, CoveredHow::DeviceTimestamps]
                .map(|how| how as u8)
                .contains(&covered.how)
            {
                continue;
            }
            let splits = recording.splits.values().filter(|s| s.begin.backend == covered.backend);
            for split in splits {
                let expected = recording.working_positions(split);
                let seen = recording.recorded_positions(split);
                self.recorded += expected.intersection(&seen).count();
                self.expected += expected.len();
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.expected > 0 && self.expected == self.recorded && self.lost == 0
    }
}

fn run(mut command: Command) -> Result<Output, String> {
    command.env_remove("LD_PRELOAD").env_remove(names::SPOOL);
    let output = command.output().map_err(|error| error.to_string())?;
    check(&output)?;
    Ok(output)
}

fn check(output: &Output) -> Result<(), String> {
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().rev().take(3).collect::<Vec<_>>().join(" / ");
    Err(format!("{}: {last}", output.status))
}

fn last_line(output: &Output) -> Option<String> {
    String::from_utf8_lossy(&output.stdout).lines().last().map(str::to_owned)
}
