//! What the agent costs processes that never use ggml but were started by a recorded program:
//! shells, compilers, scripts. Runs alternate between no agent, a library that does nothing in its
//! place, and everything that `ggprof run` sets.

use super::measure::median_and_range;
use crate::shell;
use anyhow::Context;
use ggprof_e2e::built;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Each way of each program, in turns.
const ROUNDS: usize = 401;
const PROGRAMS: [&[&str]; 3] =
    [&["/bin/true"], &["/bin/sh", "-c", ":"], &["/usr/bin/python3", "-c", "pass"]];

pub(super) fn run() -> anyhow::Result<()> {
    let asleep = Asleep::new()?;
    println!("\nProcesses without ggml, µs: medians of {ROUNDS} rounds in turns");
    println!("| process | alone | asleep | difference | of it any library | instructions |");
    println!("| :--- | ---: | ---: | ---: | ---: | ---: |");
    for program in PROGRAMS {
        if let Err(error) = asleep.measure(program) {
            println!("| {} | - | - | not measured: {error:#} | - | - |", program.join(" "));
        }
    }
    Ok(())
}

/// How a process is started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Alone,
    AnyLibrary,
    Asleep,
}

struct Asleep {
    any_library: OsString,
    /// What `ggprof run` sets.
    variables: Vec<(OsString, OsString)>,
}

impl Asleep {
    /// Asks a process under `ggprof run` what it was started with. Its directory is gone
    /// then, but no process without ggml needs it.
    fn new() -> anyhow::Result<Asleep> {
        // As users get it: the agent beside a development build is found in a way that costs more.
        let mut env = Command::new(built::one_file());
        env.args(["run", "-o", "/dev/null", "--", "env", "-0"]).stderr(Stdio::null());
        env.current_dir(shell::root());
        let output = env.output().context("ggprof cannot be started")?;
        let is_set = |(name, value): &(OsString, OsString)| {
            std::env::var_os(name).is_none_or(|before| before != *value)
        };
        let variables = output.stdout.split(|&byte| byte == 0).filter_map(|variable| {
            let at = variable.iter().position(|&byte| byte == b'=')?;
            let text = |part: &[u8]| OsString::from_vec(part.to_vec());
            Some((text(&variable[..at]), text(&variable[at + 1..])))
        });
        let any_library = built::host_library("nothing.c").into_os_string();
        Ok(Asleep { any_library, variables: variables.filter(is_set).collect() })
    }

    fn measure(&self, program: &[&str]) -> anyhow::Result<()> {
        let ways = [Way::Alone, Way::AnyLibrary, Way::Asleep];
        let mut times: [Vec<f64>; 3] = Default::default();
        for round in 0..ROUNDS {
            for turn in 0..ways.len() {
                let way = (round + turn) % ways.len();
                times[way].push(self.microseconds(ways[way], program)?);
            }
        }
        let differences = |way: usize| {
            let pairs = times[way].iter().zip(&times[0]);
            median_and_range(pairs.map(|(with, without)| with - without).collect())
        };
        let (added, least, most) = differences(2);
        let [alone, _, asleep] = times.clone().map(|times| median_and_range(times).0);
        let instructions =
            match (self.instructions(Way::Alone, program), self.instructions(Way::Asleep, program))
            {
                (Ok(alone), Ok(asleep)) => format!("{:+}", asleep as i64 - alone as i64),
                (Err(error), _) | (_, Err(error)) => format!("not measured: {error:#}"),
            };
        println!(
            "| {} | {alone:.0} | {asleep:.0} | {added:+.0} ({least:+.0} to {most:+.0}) | {:+.0} | \
             {instructions} |",
            program.join(" "),
            differences(1).0,
        );
        Ok(())
    }

    fn microseconds(&self, way: Way, program: &[&str]) -> anyhow::Result<f64> {
        let mut command = self.command(way, program[0].as_ref(), &program[1..]);
        let start = Instant::now();
        command.status().with_context(|| format!("cannot start {}", program[0]))?;
        Ok(start.elapsed().as_secs_f64() * 1e6)
    }

    /// In the process itself, as valgrind counts them, which no other program disturbs.
    fn instructions(&self, way: Way, program: &[&str]) -> anyhow::Result<u64> {
        let valgrind = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
        let arguments: Vec<&str> = valgrind.iter().chain(program).copied().collect();
        let mut command = self.command(way, "valgrind".as_ref(), &arguments);
        let output = command.stderr(Stdio::piped()).output().context("valgrind")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let count = errors.lines().rev().find_map(|line| line.split_once("Collected :"));
        Ok(count.context("no count")?.1.trim().parse()?)
    }

    fn command(&self, way: Way, program: &OsStr, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env_remove("LD_PRELOAD");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match way {
            Way::Alone => {}
            Way::AnyLibrary => _ = command.env("LD_PRELOAD", &self.any_library),
            Way::Asleep => {
                let set = self.variables.iter().filter(|(name, _)| !name.as_bytes().is_empty());
                command.envs(set.map(|(name, value)| (name, value)));
            }
        }
        command
    }
}
