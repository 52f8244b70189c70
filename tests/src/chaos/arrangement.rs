//! The command line of a run: the program behind its hazards, with the launcher or without.

use std::path::PathBuf;
use std::process::Command;

use super::baseline::Baseline;
use super::disturbance::Disturbance;
use super::hazards::{Effect, Hazard};
use crate::{built, published_ggml};

/// Directories that belong to one run only.
#[derive(Debug)]
pub(super) struct Place(PathBuf);

impl Place {
    pub(super) fn new(directory: PathBuf) -> std::io::Result<Place> {
        for name in ["runtime", "files", "temporary"] {
            std::fs::create_dir_all(directory.join(name))?;
        }
        Ok(Place(directory.canonicalize()?))
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// Hazards, sorted by where they take effect.
#[derive(Debug, Default)]
pub(super) struct Arrangement {
    inside: Vec<String>,
    around: Vec<String>,
    variables: Vec<(&'static str, String)>,
    options: Vec<&'static str>,
    /// Recorded by `GGML_PROFILE`, without a launcher.
    pub(super) by_variable: bool,
    pub(super) disturbances: Vec<Disturbance>,
}

impl Arrangement {
    pub(super) fn of(hazards: &[Hazard], baseline: &Baseline, place: &Place) -> Arrangement {
        let mut arrangement = Arrangement::default();
        for effect in hazards.iter().flat_map(|hazard| &hazard.effects) {
            arrangement.add(effect, baseline);
        }
        let temporary = place.at("temporary").display().to_string();
        for words in [&mut arrangement.inside, &mut arrangement.around] {
            words.sort_by_key(|word| turn(word));
            words.iter_mut().for_each(|word| *word = word.replace("TEMPORARY", &temporary));
        }
        arrangement
    }

    fn add(&mut self, effect: &Effect, baseline: &Baseline) {
        match effect {
            Effect::Inside(word) => self.inside.push(word.clone()),
            Effect::Around(word) => self.around.push(word.clone()),
            Effect::SpareMemory(bytes) => {
                self.inside.push(format!("limit=memory:{}", baseline.peak_bytes + bytes));
            }
            Effect::Preloaded { source, before } => self.preload(source, *before),
            Effect::Unrest { what, every_us } => {
                self.preload("unrest.c", true);
                self.unrest(&what.replace("LIBRARY", &backend_library()), *every_us);
            }
            Effect::Variable(name, value) => self.variables.push((name, (*value).to_owned())),
            Effect::Number(name, number) => self.variables.push((name, number.to_string())),
            Effect::ByVariable => self.by_variable = true,
            Effect::Option(words) => self.options.extend(words.iter()),
            Effect::Disturbance(disturbance) => self.disturbances.push(disturbance.clone()),
        }
    }

    fn preload(&mut self, source: &str, before: bool) {
        let order = if before { "before" } else { "behind" };
        let word = format!("{order}={}", built::host_library(source).display());
        if !self.inside.contains(&word) {
            self.inside.push(word);
        }
    }

    /// Several kinds of it share the variables.
    fn unrest(&mut self, what: &str, every_us: u64) {
        match self.variables.iter_mut().find(|(name, _)| *name == "CHAOS_UNREST") {
            Some((_, list)) => list.push_str(&format!(" {what}")),
            None => {
                self.variables.push(("CHAOS_UNREST", what.to_owned()));
                self.variables.push(("CHAOS_UNREST_EVERY", every_us.to_string()));
            }
        }
    }

    /// The program without the launcher, under the same hazards.
    pub(super) fn plain(&self, program: &Command, place: &Place) -> Command {
        let mut words = under(&self.around);
        words.extend(under(&self.inside));
        self.finish(words, program, place)
    }

    pub(super) fn recorded(&self, program: &Command, place: &Place) -> Command {
        if self.by_variable {
            let mut command = self.plain(program, place);
            command.env("LD_PRELOAD", built::agent()).env("GGPROF_COMMAND", built::ggprof());
            command.env("GGML_PROFILE", place.at("files/profile-%p.json"));
            return command;
        }
        let mut words = under(&self.around);
        words.push(built::ggprof().display().to_string());
        let output = place.at("files/recording.ggprof").display().to_string();
        words.extend(["run".to_owned(), "-o".to_owned(), output]);
        words.extend(self.options.iter().map(|&word| word.to_owned()));
        words.push("--".to_owned());
        words.extend(under(&self.inside));
        self.finish(words, program, place)
    }

    fn finish(&self, words: Vec<String>, program: &Command, place: &Place) -> Command {
        let mut all = words.into_iter().map(Into::into).collect::<Vec<std::ffi::OsString>>();
        all.push(program.get_program().to_owned());
        all.extend(program.get_args().map(ToOwned::to_owned));
        let mut command = Command::new(all.remove(0));
        command.args(all).current_dir(place.at("files")).env_remove("LD_PRELOAD");
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env("XDG_RUNTIME_DIR", place.at("runtime")).env("TMPDIR", place.at("temporary"));
        command
    }
}

/// The arguments that create these conditions for the command after them.
fn under(words: &[String]) -> Vec<String> {
    if words.is_empty() {
        return Vec::new();
    }
    let mut all = vec![built::host_program("under_hazards.c").display().to_string()];
    all.extend(words.iter().cloned());
    all.push("--".to_owned());
    all
}

/// What must come first: mounts need /proc and system calls, all need memory.
fn turn(word: &str) -> usize {
    const ORDER: [&str; 6] = ["full=", "readonly=", "noexec=", "hidden=", "limit=", "refuse="];
    ORDER.iter().position(|start| word.starts_with(start)).unwrap_or(3)
}

/// Of the newest libraries, and not the one that programs choose here.
fn backend_library() -> String {
    let libraries = published_ggml::libraries(published_ggml::NEWEST).unwrap_or_default();
    libraries.join("libggml-cpu-sse42.so").display().to_string()
}
