//! A program that does the same again and again, with and without the agent: what it costs each time.

use super::measure::value;
use anyhow::Context;
use ggprof_spool::names;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy)]
pub(super) struct Repeated<'a> {
    pub(super) what: &'a str,
    pub(super) program: &'a Path,
    /// Behind the libraries, and before the number of times.
    pub(super) arguments: &'a [&'a str],
    /// Instructions are counted between the first two numbers of times, nanoseconds over the
    /// third.
    pub(super) times: [u32; 3],
}

impl Repeated<'_> {
    /// Adds what to run to a command, which is the program itself or a tool that runs it.
    fn arguments(&self, command: &mut Command, libraries: &Path, times: u32) {
        command.arg(libraries).args(self.arguments).arg(times.to_string());
    }
}

/// How the agent takes part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Agent {
    Absent,
    Idle,
    Recording,
}

pub(super) struct Bench {
    pub(super) libraries: PathBuf,
    pub(super) agent: PathBuf,
    pub(super) spools: PathBuf,
}

impl Bench {
    /// Instructions each time, as valgrind counts them, which no other program disturbs.
    pub(super) fn instructions(
        &self,
        repeated: &Repeated<'_>,
        agent: Agent,
    ) -> anyhow::Result<f64> {
        // Late enough that the agent has taken out the hooks it does not need.
        let [few, many, _] = repeated.times;
        let (few, many) = (self.count(repeated, agent, few)?, self.count(repeated, agent, many)?);
        Ok((many.0 - few.0) as f64 / (many.1 - few.1) as f64)
    }

    /// All instructions, and what was computed by them.
    fn count(
        &self,
        repeated: &Repeated<'_>,
        agent: Agent,
        times: u32,
    ) -> anyhow::Result<(u64, u64)> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(repeated.program);
        repeated.arguments(&mut command, &self.libraries, times);
        self.with_agent(&mut command, agent);
        let output = command.output().context("valgrind cannot be started")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        // The agent's short-lived children are counted too, each by itself; the program ends last.
        let mut counts = errors.lines().filter_map(|line| line.split_once("refs:"));
        let refs = counts.next_back().context("no count")?.1;
        let refs = refs.trim().replace(',', "").parse()?;
        Ok((refs, value(&String::from_utf8_lossy(&output.stdout), "computed=")? as u64))
    }

    /// Nanoseconds each time, from the median time.
    pub(super) fn nanoseconds(&self, repeated: &Repeated<'_>, agent: Agent) -> anyhow::Result<f64> {
        let times = repeated.times[2];
        let mut command = Command::new(repeated.program);
        repeated.arguments(&mut command, &self.libraries, times);
        self.with_agent(&mut command, agent);
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let each = value(&text, "computed=")? / f64::from(times);
        Ok(value(&text, "median_ns=")? / each)
    }

    pub(super) fn with_agent(&self, command: &mut Command, agent: Agent) {
        let spool = self.spools.join("recording.ggprof");
        // The agent never writes over a recording.
        let _ = std::fs::remove_file(&spool);
        command.env_remove("LD_PRELOAD").env_remove(names::SPOOL);
        if agent != Agent::Absent {
            command.env("LD_PRELOAD", &self.agent);
        }
        if agent == Agent::Recording {
            command.env(names::SPOOL, spool);
        }
    }
}
