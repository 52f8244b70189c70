//! The command: arguments in, exit code out.

#![deny(unsafe_code)]
// On other systems there is nothing to record, and what only recording needs is left over.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod baseline;
mod cli;
mod commands;
mod comparison;
#[cfg(target_os = "linux")]
mod doctor;
mod exit;
mod fail_if;
mod format;
// Needs the system before Rust does, and again in a child.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod inherited;
mod input;
mod interruption;
mod kept_peaks;
#[cfg(target_os = "linux")]
mod launch;
mod manual;
mod messages;
#[cfg(target_os = "linux")]
mod op_bench;
mod op_export;
mod output;
mod printing;
mod progress;
mod quantity;
mod recording;
#[cfg(target_os = "linux")]
mod screen;
mod tables;
mod terminal;
mod version;

use cli::{Command, DeliverArgs, OpWorker};
use exit::Outcome;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    interruption::outlive_file_limit();
    let words: Vec<OsString> = std::env::args_os().collect();
    let outcome = match (DeliverArgs::of(&words), OpWorker::of(&words)) {
        (Some(arguments), _) => commands::deliver(&arguments),
        (_, Some(what)) => commands::op_worker(&what),
        _ => run(&cli::parse(words).command),
    };
    match outcome {
        Ok(outcome) => outcome.code(),
        Err(error) if exit::is_closed_pipe(&error) => Outcome::Done.code(),
        Err(error) => {
            messages::error(&error);
            exit::of_failure(&error)
        }
    }
}

fn run(command: &Command) -> anyhow::Result<Outcome> {
    if command.reads_recordings() {
        interruption::watch();
    }
    match command {
        Command::Run(arguments) => commands::run(arguments),
        Command::Attach(arguments) => commands::attach(arguments),
        Command::Ctl(arguments) => commands::ctl(arguments),
        Command::Top(arguments) => commands::top(arguments),
        Command::Doctor(arguments) => commands::doctor(arguments),
        Command::Env => commands::env(),
        Command::Report(arguments) => commands::report(arguments),
        Command::Explain(arguments) => commands::explain(arguments),
        Command::Bench(arguments) => commands::bench(arguments),
        Command::Diff(arguments) => commands::diff(arguments),
        Command::Index(arguments) => commands::index(arguments),
        Command::View(arguments) => commands::view(arguments),
        Command::Convert(arguments) => commands::convert(arguments),
        Command::Merge(arguments) => commands::merge(arguments),
        Command::Export(what) => commands::export(what),
        Command::Ops(what) => commands::ops(what),
        Command::Peaks(arguments) => commands::peaks(arguments),
        Command::Generate(what) => commands::generate(what),
    }
}
