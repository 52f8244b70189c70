//! Rust programs with ggml inside, as every crate brings it: compiled by cmake, linked statically,
//! with unused functions dropped. They are fetched and built once, which takes minutes.

use std::path::PathBuf;
use std::process::Command;

use crate::built::{self, target_directory};
use crate::model::Model;
use crate::trial::{Computes, Expected, Trial};
use crate::{tool, whisper_model};

/// A program of `applications/` and the crate that it is about.
#[derive(Debug)]
struct RustProgram {
    name: &'static str,
    /// The crate as cargo's manifest has it.
    dependency: &'static str,
    source: &'static str,
    model: fn() -> std::io::Result<PathBuf>,
    /// Graphs that run before the first token.
    graphs_before: usize,
    /// What is set while the crate is compiled.
    environment: &'static [(&'static str, &'static str)],
}

/// How cargo compiles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Profile {
    Debug,
    Release,
}

const TOKENS: usize = 6;

const LLAMA: RustProgram = RustProgram {
    name: "llama-cpp-2 0.1.160",
    dependency: "llama-cpp-2 = { version = \"=0.1.160\", default-features = false, \
                 features = [\"openmp\"] }",
    source: "llama_cpp_2.rs",
    model: || Model::TINY.file("tiny"),
    graphs_before: 0,
    environment: &[],
};

const WHISPER: RustProgram = RustProgram {
    name: "whisper-rs 0.16.0",
    dependency: "whisper-rs = \"=0.16.0\"",
    source: "whisper_rs.rs",
    model: whisper_model::file,
    // Two encode, one prepares.
    graphs_before: 3,
    // The crate has its bindings with it; to make them anew takes a compiler's library.
    environment: &[("WHISPER_DONT_GENERATE_BINDINGS", "1")],
};

/// Each program, compiled for debugging and for release.
pub fn all() -> Vec<Trial> {
    let llama = [Profile::Debug, Profile::Release].map(|profile| LLAMA.trial(profile));
    llama.into_iter().chain(quick()).collect()
}

/// Those that take less than a minute to compile, and not five.
pub fn quick() -> Vec<Trial> {
    [Profile::Debug, Profile::Release].map(|profile| WHISPER.trial(profile)).into()
}

impl RustProgram {
    fn trial(&'static self, profile: Profile) -> Trial {
        let command = move || {
            let mut command = Command::new(self.built(profile)?);
            command.arg((self.model)().map_err(|error| error.to_string())?);
            command.args([TOKENS.to_string(), "1".to_owned()]);
            Ok(command)
        };
        Trial {
            name: format!("{} {profile:?}", self.name),
            command: Box::new(command),
            computes: Computes {
                graphs: self.graphs_before + TOKENS,
                nodes: None,
                threads: Some(1),
            },
            expected: Expected::Recorded("C"),
        }
    }

    fn built(&self, profile: Profile) -> Result<PathBuf, String> {
        let name = self.source.trim_end_matches(".rs");
        let package = target_directory().join("rust-programs").join(name);
        std::fs::create_dir_all(&package).map_err(|error| error.to_string())?;
        let package = package.canonicalize().map_err(|error| error.to_string())?;
        let source = built::application(self.source);
        let manifest = format!(
            "[package]\nname = \"{name}\"\nedition = \"2024\"\n[[bin]]\nname = \"program\"\n\
             path = \"{}\"\n[dependencies]\n{}\n[workspace]\n",
            source.display(),
            self.dependency
        );
        std::fs::write(package.join("Cargo.toml"), manifest).map_err(|error| error.to_string())?;
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--quiet", "--target-dir"]).arg(package.join("target"));
        cargo.args((profile == Profile::Release).then_some("--release"));
        cargo.envs(self.environment.iter().copied()).current_dir(&package);
        tool::output(&mut cargo)?;
        let place = if profile == Profile::Release { "release" } else { "debug" };
        Ok(package.join("target").join(place).join("program"))
    }
}
