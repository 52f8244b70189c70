//! The environment, copied when the agent is loaded, because the program may change its variables
//! and its working directory later. The values are parsed only when the program uses ggml, which
//! most processes never do.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ggprof_spool::place;

use crate::clock;

/// The prefix of ggprof's own variables.
const OURS: &[u8] = b"GGPROF_";
/// Other variables that are read.
const OTHERS: [&str; 7] = ["GGML_PROFILE", "TMPDIR", "HOME", "TERM", "NO_COLOR", "LANG", "LC_ALL"];
/// How much of a value that is not understood is repeated in a message.
const LONGEST_WORD: usize = 60;

#[derive(Debug)]
pub(crate) struct Environment {
    /// As `NAME=value`.
    variables: Vec<CString>,
    directory: Option<PathBuf>,
    stdout: Option<(u64, u64)>,
    copied_ns: u64,
}

impl Environment {
    /// Of a process whose environment asks for a recording; of all others nothing is copied.
    /// `reads` as for [`Self::copy`].
    pub(crate) fn that_asks(reads: fn(&[u8]) -> bool) -> Option<Environment> {
        // SAFETY: C strings, and those of the environment are not changed meanwhile: the program
        // does not run yet.
        let asks = unsafe {
            let spool = libc::getenv(c"GGPROF_SPOOL".as_ptr());
            let is_named = !spool.is_null() && *spool != 0;
            is_named || !libc::getenv(c"GGML_PROFILE".as_ptr()).is_null()
        };
        asks.then(|| Environment::copy(reads))
    }

    /// The environment of this process at this moment. `reads` says which other names are needed.
    pub(crate) fn copy(reads: fn(&[u8]) -> bool) -> Environment {
        unsafe extern "C" {
            static environ: *const *const c_char;
        }
        let mut variables = Vec::new();
        // SAFETY: libc's list of C strings, which a null pointer ends; code that changes it
        // while other threads run must make sure that none of them reads it.
        unsafe {
            let mut next = environ;
            while !next.is_null() && !(*next).is_null() {
                let variable = CStr::from_ptr(*next);
                if is_looked_at(variable.to_bytes(), reads) {
                    variables.push(variable.to_owned());
                }
                next = next.add(1);
            }
        }
        let directory = std::env::current_dir().ok();
        let copied_ns = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        Environment { variables, directory, stdout: identity_of_stdout(), copied_ns }
    }

    /// That of a running process, whose own variables its threads may be changing: only these.
    pub(crate) fn given(variables: Vec<&CStr>) -> Environment {
        let variables = variables.into_iter().map(CStr::to_owned).collect();
        let directory = std::env::current_dir().ok();
        let copied_ns = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        Environment { variables, directory, stdout: None, copied_ns }
    }

    /// `None` where it is not set, or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.get_even_empty(name).filter(|value| !value.is_empty())
    }

    pub(crate) fn get_even_empty(&self, name: &str) -> Option<&OsStr> {
        let value = self.variables.iter().find_map(|variable| {
            variable.to_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"=")
        });
        value.map(OsStr::from_bytes)
    }

    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// The path, relative to the directory in which the program was started.
    pub(crate) fn absolute(&self, path: &Path) -> Option<PathBuf> {
        if path.is_absolute() {
            return Some(path.to_owned());
        }
        self.directory.as_ref().map(|directory| directory.join(path))
    }

    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// When this was copied, by `CLOCK_MONOTONIC`.
    pub(super) fn copied_ns(&self) -> u64 {
        self.copied_ns
    }

    /// What standard output was.
    pub(crate) fn stdout(&self) -> Option<(u64, u64)> {
        self.stdout
    }

    pub(crate) fn temporary_directory(&self) -> PathBuf {
        self.path("TMPDIR").unwrap_or_else(|| "/tmp".into())
    }

    /// Where recordings are made, if that is one place for all processes.
    pub(crate) fn place_of_recordings(&self) -> Option<PathBuf> {
        let Some(spool) = self.path("GGPROF_SPOOL") else {
            return Some(self.temporary_directory());
        };
        let directory = self.absolute(&spool)?.parent()?.to_owned();
        let is_of_all = !place::names_the_process(directory.as_os_str().as_bytes());
        is_of_all.then_some(directory)
    }

    /// One of these words; the first one if the variable is not set.
    pub(crate) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, String> {
        let Some(value) = self.get(name) else { return Ok(words[0].1) };
        let known = words.iter().find(|(word, _)| *word == value);
        known.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            format!("{} and not one of {}", set_to(name, value), words.join(", "))
        })
    }

    pub(super) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = value.to_str().and_then(|text| text.parse().ok());
        number
            .map(Some)
            .ok_or_else(|| format!("{}, which is not a valid number", set_to(name, value)))
    }
}

fn is_looked_at(variable: &[u8], reads: fn(&[u8]) -> bool) -> bool {
    let name = variable.split(|&byte| byte == b'=').next().unwrap_or_default();
    name.starts_with(OURS) || OTHERS.iter().any(|other| other.as_bytes() == name) || reads(name)
}

/// In words that a terminal can show.
pub(super) fn set_to(name: &str, value: &OsStr) -> String {
    let text = value.to_string_lossy();
    let short: String = text.chars().take(LONGEST_WORD).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{name} is \"{}{more}\"", short.replace(char::is_control, "?"))
}

/// A program may close its standard output and open another file under the same number. A summary
/// must not be written there.
pub(crate) fn identity_of_stdout() -> Option<(u64, u64)> {
    // SAFETY: all-zero is a valid `stat`, which the call fills in.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is ours; a closed descriptor is an error.
    let known = unsafe { libc::fstat(libc::STDOUT_FILENO, &mut stat) } == 0;
    known.then_some((stat.st_dev, stat.st_ino))
}

#[cfg(test)]
impl Environment {
    pub(crate) fn of(variables: &[&str]) -> Environment {
        let variables = variables.iter().map(|it| CString::new(*it).unwrap_or_default());
        let directory = Some("/at".into());
        Environment { variables: variables.collect(), directory, stdout: None, copied_ns: 0 }
    }
}
