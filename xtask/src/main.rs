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

use anyhow::bail;
use std::process::ExitCode;

struct Task {
    name: &'static str,
    help: &'static str,
    run: fn(&[String]) -> anyhow::Result<()>,
}

const TASKS: &[Task] = &[
    Task {
        name: "demo",
        help: "record a real llama.cpp, and show what comes out [--moe]",
        run: demo::run,
    },
    Task {
        name: "install",
        help: "install ggprof [--root DIR, default ~/.local]",
        run: install::run,
    },
    Task {
        name: "dist",
        help: "make the packages that are handed out [--try: install them into clean systems]",
        run: dist::run,
    },
    Task { name: "test", help: "install what the tests need, and run them all", run: test::run },
    Task {
        name: "lint",
        help: "check formatting, clippy's opinion, who imports whom, and more",
        run: lint::run,
    },
    Task {
        name: "matrix",
        help: "record every known program and build of ggml [--pairs N | --changed [WORDS]]",
        run: matrix::run,
    },
    Task { name: "bench", help: bench::HELP, run: bench::run },
    Task {
        name: "soak",
        help: "a recorded llama-server under load [--top: watched or not] [--minutes N, default 30]",
        run: soak::run,
    },
    Task {
        name: "chaos",
        help: "real programs under random hazards [--minutes N, default 60] [--seed S] [--only NAME]",
        run: chaos::run,
    },
    Task { name: "picture", help: "draw RECORDING for docs/images", run: picture::run },
    Task {
        name: "shaders",
        help: "compile the shaders that measure Vulkan devices",
        run: shaders::run,
    },
    Task { name: "fuzz", help: "fuzz every reader [--seconds N each, default 60]", run: fuzz::run },
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
    let Some((name, rest)) = arguments.split_first() else {
        println!("cargo xtask TASK\n");
        for task in TASKS {
            println!("  {:8} {}", task.name, task.help);
        }
        return Ok(());
    };
    match TASKS.iter().find(|task| task.name == name) {
        Some(task) => (task.run)(rest),
        None => bail!("there is no task {name:?}; `cargo xtask` lists them"),
    }
}
