//! In what form a changed ggml reaches the process: as libraries, inside a program, inside a
//! library; and the program that computes with it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::change::Change;
use super::llama;
use super::objects::{self, BASE, CPU, Objects, REGISTRY};
use crate::compiling::Job;
use crate::model::Model;
use crate::source_ggml::{self, BUILDING};
use crate::tool;
use crate::trial::Computes;

#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// Three libraries, of which libggml-base.so is linked so.
    Libraries(Linking),
    /// A single library.
    OneLibrary(Linking),
    /// Inside the program.
    Program(Linking),
    /// Inside a library that the program is linked to.
    Library(Linking),
}

/// How something is linked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Linking {
    pub(super) options: &'static [&'static str],
    /// The linker's version script, which says what is shown and what is not.
    pub(super) script: Option<&'static str>,
    /// What is stripped of it afterwards.
    pub(super) strip: Option<&'static str>,
}

impl Linking {
    pub(super) const PLAIN: Linking = Linking { options: &[], script: None, strip: None };
}

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// Graphs of ggml's, by `ggml_linked_in.c`.
    Graphs,
    /// Graphs on an accelerator of the host, by `accelerates.c`.
    Accelerated,
    /// Tokens of a small model, by `generates_tokens.c` with llama.cpp.
    Tokens,
}

impl Host {
    pub(super) fn computes(self) -> Computes {
        match self {
            Host::Graphs => Computes { graphs: 4, nodes: Some(4 * 18), threads: Some(2) },
            Host::Accelerated => Computes { graphs: 4, nodes: Some(4 * 18), threads: None },
            // Several would take minutes on a busy machine: they wait for each other by turning
            // round.
            Host::Tokens => Computes { graphs: 6, nodes: None, threads: Some(1) },
        }
    }

    pub(super) fn arguments(self) -> Result<Vec<OsString>, String> {
        let Computes { graphs, threads, .. } = self.computes();
        let threads = threads.unwrap_or(1).to_string();
        let mut arguments = vec![graphs.to_string().into(), threads.into()];
        if self == Host::Tokens {
            let model = Model::TINY.file("tiny").map_err(|error| error.to_string())?;
            arguments.insert(0, model.into());
        }
        Ok(arguments)
    }
}

/// Links everything in a directory of its own, and gives the program.
pub(super) fn program(
    change: &'static Change,
    form: Form,
    host: Host,
    directory: &Path,
) -> Result<PathBuf, String> {
    let _one_at_a_time = BUILDING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    std::fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    let building = Building { objects: Objects::of(change)?, host, directory };
    match form {
        Form::Libraries(linking) => building.libraries(linking),
        Form::OneLibrary(linking) => building.one_library(linking),
        Form::Program(linking) => building.program(linking),
        Form::Library(linking) => building.library(linking),
    }
}

struct Building<'a> {
    objects: Objects,
    host: Host,
    directory: &'a Path,
}

impl Building<'_> {
    fn libraries(&self, linking: Linking) -> Result<PathBuf, String> {
        let absent = self.absent(&self.ggml())?;
        let library = |name: &str, sources: &[&str], linking: Linking, needs: &[&str]| {
            let mut link = self.link(linking)?;
            link.args(["-shared", "-Wl,--no-undefined", "-Wl,-rpath,$ORIGIN", "-L"]);
            link.arg(self.directory).args(self.objects.objects(sources)).arg(&absent).args(needs);
            self.made(&mut link, name, linking)
        };
        library("libggml-base.so", &BASE, linking, &[])?;
        library("libggml-cpu.so", &CPU, Linking::PLAIN, &["-lggml-base"])?;
        library("libggml.so", &REGISTRY, Linking::PLAIN, &["-lggml-cpu", "-lggml-base"])?;
        self.program_of(&["-lggml", "-lggml-cpu", "-lggml-base"])
    }

    fn one_library(&self, linking: Linking) -> Result<PathBuf, String> {
        let mut link = self.link(linking)?;
        link.arg("-shared").args(self.ggml()).arg(self.absent(&self.ggml())?);
        self.made(&mut link, "libggml.so", linking)?;
        self.program_of(&["-lggml"])
    }

    /// The program, linked to libraries beside it.
    fn program_of(&self, libraries: &[&str]) -> Result<PathBuf, String> {
        let mut link = self.link(Linking::PLAIN)?;
        link.arg(self.compiled_host(&[])?).args(["-Wl,-rpath,$ORIGIN", "-L"]).arg(self.directory);
        self.made(link.args(libraries), "program", Linking::PLAIN)
    }

    fn program(&self, linking: Linking) -> Result<PathBuf, String> {
        self.made(self.link(linking)?.args(self.all(&[])?), "program", linking)
    }

    fn library(&self, linking: Linking) -> Result<PathBuf, String> {
        let mut link = self.link(linking)?;
        link.arg("-shared").args(self.all(&["-Dmain=compute"])?);
        let library = self.made(&mut link, "libhost.so", linking)?;
        let mut link = self.link(Linking::PLAIN)?;
        link.args(["-x", "c"]).arg(source_ggml::host_program("links_hidden_ggml.c"));
        link.args(["-x", "none"]).arg(library);
        self.made(&mut link, "program", Linking::PLAIN)
    }

    /// Everything that is linked together.
    fn all(&self, flags: &[&str]) -> Result<Vec<PathBuf>, String> {
        let mut all = vec![self.compiled_host(flags)?];
        all.extend(self.ggml());
        if self.host == Host::Tokens {
            all.extend(llama::objects(&self.objects)?);
        }
        all.push(self.absent(&all)?);
        Ok(all)
    }

    fn ggml(&self) -> Vec<PathBuf> {
        let sources: Vec<&str> = BASE.into_iter().chain(CPU).chain(REGISTRY).collect();
        self.objects.objects(&sources)
    }

    fn absent(&self, objects: &[PathBuf]) -> Result<PathBuf, String> {
        objects::absent(objects, &self.directory.join("absent.o"))
    }

    fn compiled_host(&self, flags: &[&str]) -> Result<PathBuf, String> {
        let source = match self.host {
            Host::Graphs => "ggml_linked_in.c",
            Host::Accelerated => "accelerates.c",
            Host::Tokens => "generates_tokens.c",
        };
        let result = self.directory.join("host.o");
        let mut command = self.objects.command(source);
        for place in llama::headers()? {
            command.arg("-I").arg(place);
        }
        command.args(flags).args(["-g", "-c"]).arg(source_ggml::host_program(source));
        Job { command, result: result.clone() }.run()?;
        Ok(result)
    }

    fn link(&self, linking: Linking) -> Result<Command, String> {
        let mut command = Command::new("g++");
        command.args(linking.options);
        if let Some(script) = linking.script {
            let path = self.directory.join("script");
            std::fs::write(&path, script).map_err(|error| error.to_string())?;
            command.arg(format!("-Wl,--version-script={}", path.display()));
        }
        Ok(command)
    }

    fn made(&self, link: &mut Command, name: &str, linking: Linking) -> Result<PathBuf, String> {
        let result = self.directory.join(name);
        // Another test may be running the one that is there.
        let fresh = self.directory.join(format!("{name}.part"));
        tool::output(link.args(["-ldl", "-lpthread", "-lm", "-o"]).arg(&fresh))?;
        if let Some(strip) = linking.strip {
            tool::output(Command::new("strip").arg(strip).arg(&fresh))?;
        }
        std::fs::rename(fresh, &result).map_err(|error| error.to_string())?;
        Ok(result)
    }
}
