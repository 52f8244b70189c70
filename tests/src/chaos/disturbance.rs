//! What is done to a running program from outside.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::processes;
use super::random::Random;
use crate::built;

#[derive(Debug, Clone, PartialEq)]
pub enum Disturbance {
    /// Stands still so many times.
    Stops { times: u64, held_ms: u64 },
    /// One signal, after so many thousandths of the program's usual time.
    Signal { to: To, signal: Signal, permille: u64 },
    /// A signal that the program handles, again and again.
    Storm { signal: Signal, every_us: u64 },
    /// A debugger attaches and detaches.
    Traced { times: u64, every_us: u64 },
    /// `ggprof ctl`, with verbs that follow from the seed.
    Controlled { seed: u64, every_ms: u64 },
}

/// Who gets a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    Program,
    /// The program, where there is no launcher.
    Launcher,
    /// Nobody, where there is no launcher.
    LauncherAlone,
}

/// A running program.
#[derive(Debug)]
pub(super) struct Target<'a> {
    /// The process that was started.
    pub(super) started: u32,
    pub(super) has_launcher: bool,
    /// How long the program usually runs.
    pub(super) usual: Duration,
    /// Where the launcher's socket is.
    pub(super) runtime: PathBuf,
    /// A fresh place for a copy of the recording.
    pub(super) snapshots: PathBuf,
    pub(super) over: &'a AtomicBool,
}

impl Disturbance {
    pub(super) fn apply(&self, target: &Target<'_>) {
        let Some(program) = target.wait_for_program() else { return };
        match *self {
            Disturbance::Stops { times, held_ms } => target.stop(program, times, held_ms),
            Disturbance::Signal { to, signal, permille } => {
                target.pause(target.usual * permille as u32 / 1000);
                target.send(program, to, signal);
            }
            Disturbance::Storm { signal, every_us } => target.storm(program, signal, every_us),
            Disturbance::Traced { times, every_us } => {
                let tracer = Command::new(built::host_program("attaches_and_detaches.c"))
                    .args([u64::from(program), times, every_us].map(|n| n.to_string()))
                    .status();
                tracer.expect("the tracer starts");
            }
            Disturbance::Controlled { seed, every_ms } => target.control(seed, every_ms),
        }
    }
}

impl Target<'_> {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Sleeps, but not past the program's end.
    fn pause(&self, time: Duration) {
        let begun = Instant::now();
        while !self.is_over() && begun.elapsed() < time {
            let left = time.saturating_sub(begun.elapsed());
            std::thread::sleep(left.min(Duration::from_millis(5)));
        }
    }

    fn wait_for_program(&self) -> Option<u32> {
        while !self.is_over() {
            if let Some(program) = processes::program_of(self.started) {
                return Some(program);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    fn stop(&self, program: u32, times: u64, held_ms: u64) {
        for _ in 0..times {
            processes::signal(program, Signal::STOP);
            self.pause(Duration::from_millis(held_ms));
            processes::signal(program, Signal::CONT);
            self.pause(Duration::from_millis(1 + held_ms / 2));
        }
    }

    fn send(&self, program: u32, to: To, signal: Signal) {
        match (to, self.has_launcher) {
            (To::LauncherAlone, false) => {}
            (To::Launcher | To::LauncherAlone, true) => processes::signal(self.started, signal),
            (To::Program, _) | (To::Launcher, false) => processes::signal(program, signal),
        }
    }

    /// Only while there is a handler: without it the signal might end the program.
    fn storm(&self, program: u32, signal: Signal, every_us: u64) {
        while !self.is_over() {
            if processes::handles(program, signal) {
                processes::signal(program, signal);
            }
            std::thread::sleep(Duration::from_micros(every_us));
        }
    }

    fn control(&self, seed: u64, every_ms: u64) {
        let mut random = Random::new(seed);
        for number in 0.. {
            self.pause(Duration::from_millis(every_ms));
            if self.is_over() || !self.has_launcher {
                return;
            }
            let verb = *random.one_of(&["stop", "start", "start", "status", "snapshot"]);
            let mut ctl = Command::new(built::ggprof());
            ctl.args(["ctl", verb]).arg(self.started.to_string());
            if verb == "snapshot" {
                ctl.arg("-o").arg(self.snapshots.join(format!("snapshot-{number}.ggprof")));
            }
            ctl.env("XDG_RUNTIME_DIR", &self.runtime);
            ctl.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            ctl.status().expect("ggprof starts");
        }
    }
}
