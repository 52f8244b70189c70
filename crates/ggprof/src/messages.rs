//! Everything that goes to standard error, and the sentences for what can go wrong: what happened,
//! what it means, what to try.

use ggprof_report::render::printable;
use ggprof_trace::CannotMerge;
use ggprof_trace::formats::ReadError;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

pub(crate) fn error(error: &anyhow::Error) {
    say(format_args!("ggprof: {}\n", printable(&format!("{error:#}"))));
}

pub(crate) fn warning(text: &str) {
    say(format_args!("ggprof: warning: {}\n", printable(text)));
}

pub(crate) fn note(text: &str) {
    say(format_args!("{}\n", printable(text)));
}

/// Where nobody listens any more (a full disk, a pipe whose reader has gone), the work and its exit code
/// are as they would be: `eprint!` would end the command instead.
fn say(words: fmt::Arguments<'_>) {
    let _ = io::stderr().write_fmt(words);
}

/// What is being done now. On a terminal the next one takes its place.
pub(crate) fn progress(text: &str) {
    let text = printable(text);
    match io::stderr().is_terminal() {
        true => say(format_args!("\r\x1b[2Kggprof: {text}\r")),
        false => say(format_args!("ggprof: {text}\n")),
    }
}

/// How many of many are done, on a terminal only.
pub(crate) fn counted(what: &str, done: usize, all: usize) {
    if io::stderr().is_terminal() {
        progress(&format!("{done} of {all} {what}"));
    }
}

/// Takes the last of these from the terminal.
pub(crate) fn progress_is_over() {
    if io::stderr().is_terminal() {
        say(format_args!("\r\x1b[2K"));
    }
}

/// A report, which was made printable when it was rendered.
pub(crate) fn note_styled(report: &str) {
    say(format_args!("{report}"));
}

/// A process cannot run beside itself.
pub(crate) fn named_twice(file: &Path) -> String {
    format!(
        "{} is named twice, by itself or as part of a directory: its times would count twice. Name each \
         recording once.",
        file.display()
    )
}

/// Two files hold the same recording, which is one sample.
pub(crate) fn same_recording([one, other]: [&str; 2]) -> String {
    format!(
        "{one} and {other} hold the same recording: its times would count twice. Name each recording once."
    )
}

/// How to see the processes of a command together; `files` are empty if no recordings were written.
pub(crate) fn shown_together(processes: usize, files: &[PathBuf]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=,:@%".contains(c);
    let word = |file: &PathBuf| match file.display().to_string() {
        plain if plain.chars().all(is_plain) => plain,
        other => format!("'{}'", other.replace('\'', r"'\''")),
    };
    match files {
        [] => format!(
            "{processes} processes were recorded. To see them on one axis of time, write recordings \
             (-o p.ggprof) and name all of them: ggprof view p.*.ggprof"
        ),
        files => {
            let words: Vec<String> = files.iter().map(word).collect();
            format!("All of them on one axis of time: ggprof view {}", words.join(" "))
        }
    }
}

/// Why recordings cannot be shown together.
pub(crate) fn cannot_merge(names: &[String], error: CannotMerge) -> String {
    match error {
        CannotMerge::NoTimes(at) => format!(
            "{} does not say when it was made, so it cannot be shown together with others. \
             Recordings of ggprof itself say so; look at this file alone.",
            names[at]
        ),
        CannotMerge::IsMerged(at) => format!(
            "{} was made of several recordings already. Name those, and the others, at once.",
            names[at]
        ),
        CannotMerge::TooManyBackends(at) => format!(
            "with {} there are more backends than ggprof can tell apart. Name fewer recordings.",
            names[at]
        ),
    }
}

/// Why a recording could not be read at all.
pub(crate) fn cannot_read(name: &str, error: &ReadError) -> String {
    match error {
        ReadError::Empty => format!(
            "{name} is empty, so there is nothing to report. The recorded program may have ended \
             before it computed anything; record it again."
        ),
        ReadError::NotAProfile(what) => format!(
            "{name} is no recording: {what}. ggprof reads its own recordings and the JSON of ggml's \
             profiler, also as .gz or .zst; check that this is the file you meant."
        ),
        ReadError::TooManyEvents(most) => format!(
            "{name} has more than {most} events, which is more than ggprof can hold. Record a \
             shorter run."
        ),
        ReadError::Io(error) => match error.kind() {
            ErrorKind::NotFound => format!("{name} does not exist. Check the path."),
            ErrorKind::NotADirectory => {
                format!("{name} does not exist: a part of its path is a file. Check the path.")
            }
            ErrorKind::PermissionDenied => {
                format!("you may not read {name}. Check its permissions with `ls -l`.")
            }
            ErrorKind::IsADirectory => {
                format!("{name} is a directory. Name the recording inside it.")
            }
            _ => {
                format!("{name} could not be read: {error}. Copy it to a local disk and try again.")
            }
        },
    }
}

/// Why a file could not be written; what stood there before is untouched.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> String {
    let name = path.display();
    match error.kind() {
        // As in /proc, whose files only the system makes.
        ErrorKind::NotFound if path.parent().is_some_and(Path::is_dir) => format!(
            "{name} cannot be written: no file can be made in its directory. Choose another \
             place."
        ),
        ErrorKind::NotFound => {
            format!("{name} cannot be written: its directory does not exist. Create it first.")
        }
        ErrorKind::NotADirectory => {
            format!("{name} cannot be written: a part of its path is a file. Check the path.")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            format!("{name} cannot be written: {error}. Nothing was changed; choose another place.")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => format!(
            "{name} cannot be written: the disk is full. Nothing was left behind; free some space \
             or choose another disk."
        ),
        ErrorKind::IsADirectory => {
            format!("{name} cannot be written: it is a directory. Name a file inside it.")
        }
        _ => format!("{name} cannot be written: {error}. Nothing was changed; try another place."),
    }
}

/// Why a command could not be started.
pub(crate) fn cannot_start(program: &OsStr, error: &io::Error) -> String {
    let name = program.to_string_lossy();
    match error.kind() {
        // A path that leads to a file: what it is to be run by is missing.
        ErrorKind::NotFound if name.contains('/') && Path::new(program).exists() => format!(
            "{name} cannot be started: what it is run by was not found. If it is a script, check the \
             first line; if not, it was made for another system."
        ),
        ErrorKind::NotFound => {
            format!("the command {name} was not found. Check its name, or give its whole path.")
        }
        ErrorKind::PermissionDenied => {
            format!("you may not run {name}. Check its permissions with `ls -l`.")
        }
        _ => format!("{name} cannot be started: {error}. Does it start without ggprof?"),
    }
}

/// A process used ggml, and only the Vulkan loader loaded the agent into it.
pub(crate) fn without_agent(program: &str, pid: &str) -> String {
    format!(
        "{program} (process {pid}) used ggml and was not recorded: the program that started it \
         removed LD_PRELOAD from its environment or set its own, so the agent was not loaded. Put `ggprof run --` in \
         front of {program} instead."
    )
}

/// A program ended, and nothing was recorded.
pub(crate) const NOTHING_RECORDED: &str = "\
nothing was recorded. If the program's error output has a line \"ggprof: nothing is recorded\", that \
line says why. Otherwise the program did not compute with ggml, or ggprof cannot reach its ggml \
(linked statically, stripped of its symbols, or started by another program that clears its \
environment or sets LD_PRELOAD). `ggprof doctor -- COMMAND` says more.";

/// A process that is recorded goes on after the command that started it has ended.
pub(crate) fn goes_on(name: &str, pid: u32) -> String {
    format!(
        "the command has ended and {name} (process {pid}), which it started, goes on: what it does \
         from now on is not recorded. {HOW_TO_RECORD_A_DAEMON}"
    )
}

/// The same of one that computed nothing yet.
pub(crate) fn goes_on_unrecorded(name: &str, pid: u32) -> String {
    format!(
        "nothing was recorded until the command ended. {name} (process {pid}), which it started, goes \
         on and is not recorded any more. {HOW_TO_RECORD_A_DAEMON}"
    )
}

const HOW_TO_RECORD_A_DAEMON: &str = "Recordings end with the command: start the program in the \
foreground, or use `ggprof attach`.";

/// A program contains a ggml that cannot be found.
pub(crate) fn stripped(program: &Path) -> String {
    format!(
        "nothing can be recorded: {} has ggml inside and was stripped of its symbols, which ggprof \
         needs to find ggml's functions. Use a build that was not stripped, or one with shared \
         libraries (-DBUILD_SHARED_LIBS=ON).",
        program.display()
    )
}

/// A program crashed.
pub(crate) fn crashed(signal: &str) -> String {
    format!(
        "the program was ended by {signal}. Run it without ggprof: if it does not crash then, this \
         is a bug in ggprof; please report it."
    )
}

/// The part that was asked for holds nothing.
pub(crate) fn nothing_selected(name: &str) -> String {
    format!(
        "{name} has no graph run that all of --from, --to, --phase and --request hold for. \
         `--by run` and `--by request` list what there is."
    )
}

/// Files of ggml's own profiler do not say when they were made.
pub(crate) fn no_clock_times(name: &str) -> String {
    format!(
        "{name} does not say at what time of day it was recorded. Give the time since its start: 90s."
    )
}
