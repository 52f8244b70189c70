//! ggml's RPC of older versions, built here from published sources: its library, and a small program
//! that is a server or a client.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compiling::{self, Job};
use crate::source_ggml::host_program;
use crate::source_ggml::{BASE, BUILDING, CPU, Compiler, REGISTRY, directory, job, source_of};
use crate::tool;

/// Versions of the crate that carries the source, and the protocol that each of them speaks.
pub const PROTOCOLS: [(&str, &str); 2] = [("0.6.1", "5.1.0"), ("0.7.0", "6.0.0")];

const RPC: [&str; 2] = ["ggml-rpc/ggml-rpc.cpp", "ggml-rpc/transport.cpp"];
/// Only some versions have these.
const MORE_CPU: [&str; 1] = ["ggml-cpu/iqp.cpp"];
const PROGRAM: &str = "leaves_graphs_to_a_server.c";

/// The program, beside its libraries. `None`, with a sentence, where that is not possible.
pub fn program(version: &str) -> Option<PathBuf> {
    tool::fetched("ggml's source", built(version))
}

fn built(version: &str) -> Result<PathBuf, String> {
    let _one_at_a_time = BUILDING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let ggml = source_of(version)?;
    let place = directory()?.join(format!("rpc-{version}"));
    std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
    let object = |source: &str| place.join(format!("{}.o", source.replace('/', "_")));
    let is_there = |source: &&str| ggml.join("src").join(source).is_file();
    let of = |sources: &[&'static str]| -> Vec<&'static str> {
        sources.iter().copied().filter(is_there).collect()
    };
    let cpu = of(&[&CPU[..], &MORE_CPU].concat());
    let all = [cpu.clone(), of(&BASE), of(&REGISTRY), of(&RPC)].concat();
    let missing = all.into_iter().filter(|source| !object(source).is_file());
    let compile = |source| job(Compiler::Gcc, &ggml, source, &[], object(source));
    compiling::run_all(missing.map(compile).collect())?;
    let library = |name: &str, sources: &[&str], needs: &[&str]| {
        let mut link = Command::new("g++");
        link.args(["-shared", "-Wl,--no-undefined", "-Wl,-rpath,$ORIGIN", "-L", "."]);
        link.args(sources.iter().map(|source| object(source))).args(needs);
        made(link.args(["-ldl", "-lpthread", "-lm"]), &place, name)
    };
    library("libggml-base.so", &of(&BASE), &[])?;
    library("libggml-cpu.so", &cpu, &["-lggml-base"])?;
    library("libggml-rpc.so", &of(&RPC), &["-lggml-base"])?;
    library("libggml.so", &of(&REGISTRY), &["-lggml-cpu", "-lggml-base"])?;
    let mut link = Compiler::Gcc.command(PROGRAM, &ggml);
    link.arg(host_program(PROGRAM)).args(["-L", ".", "-Wl,-rpath,$ORIGIN"]);
    link.args(["-lggml", "-lggml-rpc", "-lggml-cpu", "-lggml-base", "-lm"]);
    made(&mut link, &place, "rpc")?;
    Ok(place.join("rpc"))
}

/// Unless it is there already; a change of the program makes it anew.
fn made(command: &mut Command, place: &Path, name: &str) -> Result<(), String> {
    let result = place.join(name);
    let changed = |path: &Path| path.metadata().and_then(|it| it.modified()).ok();
    if result.is_file() && changed(&result) > changed(&host_program(PROGRAM)) {
        return Ok(());
    }
    let mut whole = Command::new(command.get_program());
    whole.args(command.get_args()).current_dir(place);
    Job { command: whole, result }.run()
}
