//! Compiling a changed ggml. Sources that no changed text is part of are compiled once for all
//! changes; those that a small graph on the processor does not need are left out, and their
//! functions do nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::change::{Change, UNCHANGED};
use crate::compiling::{self, Job};
use crate::source_ggml::{self, Compiler};
use crate::tool;

/// The library libggml-base.so.
pub(super) const BASE: [&str; 6] = [
    "ggml-backend.cpp",
    "ggml-quants.c",
    "ggml.c",
    "ggml-threading.cpp",
    "ggml.cpp",
    "ggml-alloc.c",
];
/// The library libggml-cpu.so.
pub(super) const CPU: [&str; 8] = [
    "ggml-cpu/ops.cpp",
    "ggml-cpu/ggml-cpu.cpp",
    "ggml-cpu/ggml-cpu.c",
    "ggml-cpu/binary-ops.cpp",
    "ggml-cpu/vec.cpp",
    "ggml-cpu/traits.cpp",
    "ggml-cpu/arch/x86/quants.c",
    "ggml-cpu/quants.c",
];
/// The library libggml.so.
pub(super) const REGISTRY: [&str; 2] = ["ggml-backend-reg.cpp", "ggml-backend-dl.cpp"];

/// They compute, and call none of the functions that matter.
const KERNELS: [&str; 6] = [
    "ggml-cpu/ops.cpp",
    "ggml-cpu/binary-ops.cpp",
    "ggml-cpu/vec.cpp",
    "ggml-cpu/arch/x86/quants.c",
    "ggml-cpu/quants.c",
    "ggml-quants.c",
];

/// A changed ggml's objects.
#[derive(Debug)]
pub(super) struct Objects {
    /// The changed sources.
    pub(super) ggml: PathBuf,
    change: &'static Change,
    own: PathBuf,
    /// Where those are that the change does not touch.
    unchanged: Option<Box<Objects>>,
}

impl Objects {
    pub(super) fn of(change: &'static Change) -> Result<Objects, String> {
        let unchanged =
            if *change == UNCHANGED { None } else { Some(Box::new(Objects::of(&UNCHANGED)?)) };
        let mut fingerprint = DefaultHasher::new();
        change.hash(&mut fingerprint);
        let name = format!("{:016x}", fingerprint.finish());
        let directory = source_ggml::directory()?.join("changed").join(name);
        let (ggml, own) = (directory.join("ggml"), directory.join("objects"));
        std::fs::create_dir_all(&own).map_err(|error| error.to_string())?;
        place_sources(change, &ggml)?;
        let objects = Objects { ggml, change, own, unchanged };
        let all = CPU.iter().chain(&BASE).chain(&REGISTRY);
        let missing = all.filter(|source| !objects.object(source).is_file());
        compiling::run_all(missing.map(|source| objects.job(source)).collect())?;
        Ok(objects)
    }

    /// Where a source's object is.
    pub(super) fn object(&self, source: &str) -> PathBuf {
        match &self.unchanged {
            Some(unchanged) if !self.touches(source, unchanged) => unchanged.object(source),
            _ => self.own.join(format!("{}.o", source.replace('/', "_"))),
        }
    }

    pub(super) fn objects(&self, sources: &[&str]) -> Vec<PathBuf> {
        sources.iter().map(|source| self.object(source)).collect()
    }

    /// Compiles a source, of ggml's or another, with the change's flags and headers.
    pub(super) fn command(&self, source: &str) -> Command {
        let mut command = Compiler::Gcc.command(source, &self.ggml);
        command.args(["-ffunction-sections", "-fdata-sections"]).args(self.change.flags);
        command
    }

    fn job(&self, source: &str) -> Job {
        let result = self.object(source);
        let mut command = self.command(source);
        command.args(["-mavx2", "-mfma", "-mf16c", "-MMD", "-MF"]).arg(result.with_extension("d"));
        command.args(KERNELS.contains(&source).then_some("-O0"));
        command.arg("-c").arg(self.ggml.join("src").join(source));
        Job { command, result }
    }

    /// Whether changed text is part of the source, as the compiler listed it.
    fn touches(&self, source: &str, unchanged: &Objects) -> bool {
        let list = unchanged.object(source).with_extension("d");
        let Ok(list) = std::fs::read_to_string(list) else { return true };
        // Every file there is a link to the published one.
        let parts = list.split_whitespace().filter_map(|part| Path::new(part).canonicalize().ok());
        let parts: BTreeSet<PathBuf> = parts.collect();
        let is_part =
            |file| unchanged.ggml.join(file).canonicalize().is_ok_and(|file| parts.contains(&file));
        !self.change.flags.is_empty() || self.change.edits.iter().any(|edit| is_part(edit.file))
    }
}

/// An object with the functions that are called in these and defined in none of them: of sources
/// that were left out. They do nothing and return nothing.
pub(super) fn absent(objects: &[PathBuf], result: &Path) -> Result<PathBuf, String> {
    let mut list = Command::new("nm");
    let list = tool::output(list.args(["--format=posix"]).args(objects))?;
    let (mut called, mut defined) = (BTreeSet::new(), BTreeSet::new());
    for line in list.lines() {
        let mut words = line.split(' ');
        match (words.next(), words.next()) {
            (Some(name), Some("U")) => _ = called.insert(name),
            (Some(name), Some(_)) => _ = defined.insert(name),
            _ => {}
        }
    }
    let is_ggmls = |name: &&&str| ["ggml", "llama", "llm"].iter().any(|part| name.contains(part));
    let mut text = String::from(".text\n");
    for name in called.difference(&defined).filter(is_ggmls) {
        text += &format!(".hidden {name}\n.globl {name}\n.type {name}, @function\n{name}:\n");
    }
    text += "xor %eax, %eax\nret\n.section .note.GNU-stack,\"\",@progbits\n";
    let source = result.with_extension("s");
    std::fs::write(&source, text).map_err(|error| error.to_string())?;
    let mut command = Command::new("gcc");
    command.arg("-c").arg(source);
    Job { command, result: result.to_owned() }.run()?;
    Ok(result.to_owned())
}

/// Directories with sources that others include.
const PLACES: [&str; 8] = [
    "include",
    "src",
    "src/ggml-cpu",
    "src/ggml-cpu/amx",
    "src/ggml-cpu/arch",
    "src/ggml-cpu/arch/x86",
    "src/ggml-cpu/llamafile",
    "src/ggml-cpu/tiled",
];

/// ggml's sources, links to the published ones but where they are changed.
fn place_sources(change: &Change, ggml: &Path) -> Result<(), String> {
    let published = source_ggml::source_directory()?;
    let text = |error: std::io::Error| error.to_string();
    let mut changed: BTreeMap<&str, String> = BTreeMap::new();
    for edit in change.edits {
        let before = match changed.remove(edit.file) {
            Some(before) => before,
            None => std::fs::read_to_string(published.join(edit.file)).map_err(text)?,
        };
        changed.insert(edit.file, edit.applied(&before)?);
    }
    for place in PLACES {
        std::fs::create_dir_all(ggml.join(place)).map_err(text)?;
    }
    for (file, words) in &changed {
        std::fs::write(ggml.join(file), words).map_err(text)?;
    }
    for place in PLACES {
        for entry in published.join(place).read_dir().map_err(text)?.flatten() {
            let link = ggml.join(place).join(entry.file_name());
            if link.symlink_metadata().is_err() {
                std::os::unix::fs::symlink(entry.path(), link).map_err(text)?;
            }
        }
    }
    Ok(())
}
