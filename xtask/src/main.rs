//! The project's tasks. What CI runs is what you run.

#![forbid(unsafe_code)]

mod bench;
mod chaos;
mod demo;
mod dist;
mod fuzz;
mod install;
mod lint;
mod matrix;
mod picture;
mod shaders;
mod shell;
mod soak;
mod system;
mod test;

use anyhow::{anyhow, bail};
use std::process::ExitCode;

struct Task {
    name: &'static str,
    /// What may stand behind the name.
    takes: &'static str,
    /// The first line stands in the list of tasks.
    help: &'static str,
    run: fn(&[String]) -> anyhow::Result<()>,
}

const TASKS: &[Task] = &[
    Task {
        name: "demo",
        takes: "[--moe]",
        help: "record a real llama.cpp, and show what comes out\n--moe: of a model with experts",
        run: demo::run,
    },
    Task {
        name: "install",
        takes: "[--root DIR]",
        help: "install ggprof, its manual pages and completions, and libggml-profiler\n\
               --root DIR: there instead of ~/.local",
        run: install::run,
    },
    Task {
        name: "dist",
        takes: "[--try]",
        help: "make the packages that are handed out, in target/dist\n\
               --try: install them into clean systems of Debian 11 to sid, and those for aarch64 into an emulated \
               one (needs root)",
        run: dist::run,
    },
    Task {
        name: "test",
        takes: "[ARGUMENTS of cargo test]",
        help: "install what the tests need, and run them all",
        run: test::run,
    },
    Task {
        name: "lint",
        takes: "[--fetch]",
        help: "check formatting, clippy's opinion, who imports whom, and more\n\
               --fetch: also what needs the oldest Rust and its library for other systems, by rustup",
        run: lint::run,
    },
    Task {
        name: "matrix",
        takes: "[--pairs N | --changed [WORDS]]",
        help: "record every known program and build of ggml: completeness and cost\n\
               --pairs N: runs without and with the agent (default: 10)\n\
               --changed [WORDS]: changed ggml, Rust programs, old ggml; those with WORDS in their name",
        run: matrix::run,
    },
    Task { name: "bench", takes: bench::TAKES, help: bench::HELP, run: bench::run },
    Task {
        name: "soak",
        takes: "[--top] [--minutes N]",
        help: "a recorded llama-server under load, beside one that is not recorded\n\
               --top: one server, with and without `ggprof top` beside it\n\
               --minutes N: for so long (default: 30)",
        run: soak::run,
    },
    Task {
        name: "chaos",
        takes: "[--minutes N] [--seed S] [--only PROGRAM|HAZARD]",
        help: "real programs under random hazards, alone and recorded\n\
               --minutes N: for so long (default: 60)\n\
               --seed S: from this seed on; without --minutes one run\n\
               --only NAME: no run without this program or hazard",
        run: chaos::run,
    },
    Task {
        name: "fuzz",
        takes: "[--seconds N]",
        help: "hostile bytes for every reader\n--seconds N: for each of them (default: 60)",
        run: fuzz::run,
    },
    Task {
        name: "picture",
        takes: "[RECORDING NAME]",
        help: "draw the page in the README, or that of a recording, for docs/images\nNAME: of the picture",
        run: picture::run,
    },
    Task {
        name: "shaders",
        takes: "",
        help: "compile the shaders that measure Vulkan devices (needs glslang)",
        run: shaders::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> anyhow::Result<()> {
    let Some((name, rest)) =
        arguments.split_first().filter(|(name, _)| *name != "help" && !is_help(name))
    else {
        println!("cargo xtask TASK; `cargo xtask TASK --help` has its options\n");
        for task in TASKS {
            println!("  {:8} {}", task.name, task.help.lines().next().unwrap_or_default());
        }
        return Ok(());
    };
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        bail!("there is no task {name:?}; `cargo xtask` lists them")
    };
    if rest.first().is_some_and(|word| is_help(word)) {
        println!("{}\n\n{}", task.usage(), task.help);
        return Ok(());
    }
    (task.run)(rest)
}

fn is_help(word: &str) -> bool {
    ["--help", "-h"].contains(&word)
}

impl Task {
    fn usage(&self) -> String {
        format!("cargo xtask {} {}", self.name, self.takes).trim_end().to_owned()
    }
}

/// What a task says of arguments that it does not take.
fn misused(name: &str) -> anyhow::Error {
    let task = TASKS.iter().find(|task| task.name == name);
    anyhow!(task.map_or_else(|| format!("cargo xtask {name}"), Task::usage))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> anyhow::Result<()> {
        dispatch(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn help_runs_no_task() {
        for task in TASKS {
            assert!(asked(&[task.name, "--help"]).is_ok(), "{}", task.name);
        }
        assert!(asked(&["--help"]).is_ok());
    }

    /// `test` passes all on to cargo.
    #[test]
    fn arguments_that_a_task_does_not_take_are_answered_with_those_that_it_takes() {
        for task in TASKS.iter().filter(|task| task.name != "test") {
            let problem = asked(&[task.name, "--no", "--such", "--words"]).unwrap_err();
            assert_eq!(problem.to_string(), task.usage());
        }
    }
}
