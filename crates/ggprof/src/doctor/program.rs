//! A program under examination: its file, its processes, and a recording of its first graph.

use crate::exit::Outcome;
use crate::launch::{self, Look, Process, Program, Spools};
use crate::messages;
use crate::recording::Recording;
use ggprof_agents::Libc;
use ggprof_report::{Block, Cell, Document, Fact, documents};
use ggprof_spool::names;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Lines of a program's output that are shown if it failed.
const MOST_LINES: usize = 5;
/// What lines that tell of an error have in common, in small letters.
const SIGNS_OF_ERRORS: [&str; 11] = [
    "error",
    "fail",
    "cannot",
    "can't",
    "could not",
    "couldn't",
    "unable",
    "not found",
    "no such",
    "invalid",
    "abort",
];
/// What the agent says if it cannot record.
const AGENT_REFUSES: &str = "ggprof: nothing is recorded: ";
/// And if it cannot record the ggml of one library: the library and the reason follow.
const AGENT_LEAVES_OUT: &str = "ggprof: nothing is recorded of ";

pub(crate) fn examine(command: &[OsString], seconds: u64) -> anyhow::Result<(Document, Outcome)> {
    let agent = launch::find_agent_for(&command[0])?;
    let spools = Spools::new()?;
    let mut document = Document::default();
    document.heading("program", format!("ggprof doctor: {}", command[0].to_string_lossy()));
    let program = launch::examine(&command[0], &agent);
    program.iter().for_each(|program| file(&mut document, program));
    preloaded(&mut document);
    messages::note(&format!(
        "Looking at {} until its first graph run, for at most {seconds} s; then ggprof ends it.",
        command[0].to_string_lossy()
    ));
    let mut variables = vec![(names::SPOOL, spools.pattern())];
    variables.extend(launch::announce_vulkan_layer(
        agent.library(program.and_then(|program| program.libc)),
        spools.path(),
    ));
    let said = spools.beside("output");
    let patience = Duration::from_secs(seconds);
    let has_computed = || recordings(&spools).iter().any(has_graph_run);
    let look = launch::look(command, &agent, &variables, &said, patience, has_computed)?;
    let recordings = recordings(&spools);
    how_it_went(&mut document, &look, &recordings, seconds);
    processes(&mut document, &look.processes);
    let without_agent = spools.without_agent();
    document.blocks.extend(without_agent.iter().cloned().map(Block::Warning));
    for recording in &recordings {
        documents::observation(&mut document, &recording.trace);
    }
    if recordings.is_empty() && without_agent.is_empty() {
        nothing(&mut document, &look, &said);
    }
    let any = !recordings.is_empty();
    Ok((document, if any { Outcome::Done } else { Outcome::Incomplete }))
}

fn recordings(spools: &Spools) -> Vec<Recording> {
    let files = spools.files();
    files
        .iter()
        .filter_map(|file| Recording::of_process(file, &launch::process_of(file)).ok())
        .collect()
}

fn has_graph_run(recording: &Recording) -> bool {
    !recording.trace.graph_runs.is_empty()
}

/// What the file tells.
fn file(document: &mut Document, program: &Program) {
    let path = Cell::text(program.path.display().to_string());
    let mut facts = vec![Fact::new("path", path, "{}")];
    let processor = program.processor.map(Cell::text);
    facts.extend(processor.map(|processor| Fact::new("processor", processor, "{}")));
    let libc = program.libc.map(|libc| match libc {
        Libc::Glibc => "glibc",
        Libc::Musl => "musl",
    });
    facts.extend(libc.map(|libc| Fact::new("libc", Cell::text(libc), "for {}")));
    document.fact("file", "program", facts);
    if let Some(obstacle) = program.obstacle {
        document.blocks.push(Block::Warning(obstacle.sentence(&program.path)));
    }
}

/// What else is loaded into programs here.
fn preloaded(document: &mut Document) {
    let list = std::env::var("LD_PRELOAD").unwrap_or_default();
    if list.is_empty() {
        return;
    }
    let words = "{} stays, the agent comes behind it";
    let before = Fact::new("before", Cell::text(&list), words);
    document.fact("preload", "LD_PRELOAD", vec![before]);
    let is_separator = |c: char| c == ':' || c.is_ascii_whitespace();
    for other in list.split(is_separator).filter(|other| holds_ggml(Path::new(other))) {
        document.blocks.push(Block::Warning(format!(
            "{other} stands in for functions of ggml as well: another profiler. Both see the \
             calls, and each counts the other's time; of two ggprof agents the first records."
        )));
    }
}

fn how_it_went(document: &mut Document, look: &Look, recordings: &[Recording], seconds: u64) {
    let words = match look.ended {
        Some(ended) => format!("ended by itself with code {}", ended.code()),
        None if recordings.iter().any(has_graph_run) => {
            "was ended after its first graph run".to_owned()
        }
        None => format!("was ended after {seconds} s without a graph run (--seconds N for more)"),
    };
    document.fact("look", "it", vec![Fact::new("ended", Cell::Text(words), "{}")]);
}

/// Processes that use ggml and that the agent did not get into.
fn processes(document: &mut Document, processes: &[Process]) {
    for process in processes.iter().filter(|process| !process.ggml.is_empty() && !process.has_agent)
    {
        document.blocks.push(Block::Warning(format!(
            "{} uses {} but was started without the agent: a program that clears the \
             environment of what it starts, sets LD_PRELOAD in it, or changes rights. Put `ggprof run --` in front of \
             that command instead.",
            process.program.display(),
            process.ggml[0].display(),
        )));
    }
}

/// Why there is nothing to tell.
fn nothing(document: &mut Document, look: &Look, said: &Path) {
    let said = std::fs::read(said).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let said_behind = |words| said.lines().find_map(|line| line.strip_prefix(words));
    let warnings = match (said_behind(AGENT_REFUSES), said_behind(AGENT_LEAVES_OUT)) {
        (Some(reason), _) => Some(format!("The agent could not record: {reason}.")),
        (None, Some(which)) => Some(format!("Nothing can be recorded of {which}.")),
        (None, None) => nothing_seen(look),
    };
    let failed = look.ended.is_some_and(|ended| ended.code() != 0);
    let errors = if failed { first_errors(&said) } else { Vec::new() };
    let errors = errors.into_iter().map(|line| format!("it said: {line}"));
    document.blocks.extend(warnings.into_iter().chain(errors).map(Block::Warning));
}

fn nothing_seen(look: &Look) -> Option<String> {
    if look.processes.iter().any(|process| process.has_agent && !process.ggml.is_empty()) {
        return Some("ggml was loaded, but neither a scheduler nor a backend was made.".to_owned());
    }
    if look.processes.iter().any(|process| !process.ggml.is_empty()) {
        return None;
    }
    let inside = look.processes.iter().find(|process| holds_ggml(&process.program));
    if let Some(process) = inside {
        return Some(format!(
            "{} has ggml linked into itself and does not show its functions: it cannot be \
             recorded. Use a build with shared libraries (-DBUILD_SHARED_LIBS=ON).",
            process.program.display()
        ));
    }
    let code: BTreeSet<&PathBuf> = look.processes.iter().flat_map(|it| &it.code).collect();
    Some(match code.into_iter().find(|file| launch::hides_ggml(file)) {
        Some(file) => messages::stripped(file),
        None => "No process loaded ggml. If the program needs a model or a request before \
                 it does, give it one, or more time with --seconds."
            .to_owned(),
    })
}

/// The first lines that report an error: after them programs print their stacks. Without
/// any, the last ones.
fn first_errors(said: &str) -> Vec<&str> {
    let is_error = |line: &&str| {
        let line = line.to_lowercase();
        SIGNS_OF_ERRORS.iter().any(|sign| line.contains(sign))
    };
    let errors: Vec<&str> = said.lines().filter(is_error).take(MOST_LINES).collect();
    if !errors.is_empty() {
        return errors;
    }
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(MOST_LINES)..].to_vec()
}

/// Whether a program's file names ggml's functions.
fn holds_ggml(program: &Path) -> bool {
    let bytes = std::fs::read(program).unwrap_or_default();
    bytes.windows(13).any(|window| window == b"ggml_backend_")
}
