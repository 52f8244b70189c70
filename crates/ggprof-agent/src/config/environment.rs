//! The environment, copied when the agent is loaded, because the program may change its variables
//! and its working directory later. The values are parsed only when the program uses ggml, which
//! most processes never do. Copying does not allocate either: the copy has a place of its own (`room`).

mod room;

use std::borrow::Cow;
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ggprof_ggml::{PROFILE_VARIABLE, PROFILE_VARIABLE_IN_C};
use ggprof_spool::{names, place};

use crate::clock;

/// Variables that are read beside ggprof's own.
const OTHERS: [&str; 7] =
    [PROFILE_VARIABLE, "TMPDIR", "HOME", "TERM", "NO_COLOR", "LANG", "LC_ALL"];
/// How much of a value that is not understood is repeated in a message.
const LONGEST_WORD: usize = 60;

#[derive(Debug)]
pub(crate) struct Environment {
    /// As `NAME=value`, each with a zero behind it.
    variables: Cow<'static, [u8]>,
    /// Where the process was started, where a path may be relative to it.
    directory: Option<PathBuf>,
    /// What standard output was, where a summary may be written there.
    stdout: Option<(u64, u64)>,
    /// When this was copied, by `CLOCK_MONOTONIC`; 0 if nobody will ask.
    copied_ns: u64,
}

impl Environment {
    /// The environment, if it asks for a recording; otherwise nothing is copied. `reads` as for
    /// [`Self::copy`].
    #[unsafe(link_section = ".text.asleep")]
    pub(crate) fn that_asks(reads: fn(&[u8]) -> bool) -> Option<Environment> {
        // SAFETY: C strings, and those of the environment are not changed meanwhile: the program
        // does not run yet.
        let asks = unsafe {
            let spool = libc::getenv(names::SPOOL_IN_C.as_ptr());
            let is_named = !spool.is_null() && *spool != 0;
            is_named || !libc::getenv(PROFILE_VARIABLE_IN_C.as_ptr()).is_null()
        };
        asks.then(|| Environment::copy(reads))
    }

    /// The environment of this process at this moment. `reads` says which other variables are needed.
    #[unsafe(link_section = ".text.asleep")]
    pub(crate) fn copy(reads: fn(&[u8]) -> bool) -> Environment {
        let wanted = || all_variables().filter(|variable| is_looked_at(variable.to_bytes(), reads));
        let mut environment = Environment::of_variables(room::filled(wanted()), wanted);
        // Under `ggprof run`, as most processes are, neither is needed.
        let spool = environment.get(names::SPOOL).unwrap_or_default();
        if !spool.as_bytes().starts_with(b"/") {
            environment.directory = std::env::current_dir().ok();
            environment.stdout = identity_of_stdout();
        }
        environment
    }

    /// Only the given variables: the threads of a running program may be changing its own.
    pub(crate) fn given(variables: &[&CStr]) -> Environment {
        let given = Environment::of_variables(None, || variables.iter().copied());
        Environment { directory: std::env::current_dir().ok(), ..given }
    }

    /// The copy, or else one that is allocated.
    fn of_variables<'v, I: Iterator<Item = &'v CStr>>(
        copy: Option<&'static [u8]>,
        variables: impl Fn() -> I,
    ) -> Environment {
        let allocated = || variables().flat_map(CStr::to_bytes_with_nul).copied().collect();
        let variables = copy.map_or_else(|| Cow::Owned(allocated()), Cow::Borrowed);
        let mut copied = Environment { variables, directory: None, stdout: None, copied_ns: 0 };
        if copied.get(names::START_AFTER_NS).is_some() {
            copied.copied_ns = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        }
        copied
    }

    /// `None` where it is not set, or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.get_even_empty(name).filter(|value| !value.is_empty())
    }

    #[unsafe(link_section = ".text.asleep")]
    pub(crate) fn get_even_empty(&self, name: &str) -> Option<&OsStr> {
        let mut rest = &*self.variables;
        while !rest.is_empty() {
            // SAFETY: there is a zero behind every variable, and so at the end.
            let variable = unsafe { CStr::from_ptr(rest.as_ptr().cast()) }.to_bytes();
            if let Some(value) = value_of(variable, name) {
                return Some(OsStr::from_bytes(value));
            }
            rest = &rest[variable.len() + 1..];
        }
        None
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
        let Some(spool) = self.path(names::SPOOL) else {
            return Some(self.temporary_directory());
        };
        let directory = self.absolute(&spool)?.parent()?.to_owned();
        let is_of_all = !place::names_the_process(directory.as_os_str().as_bytes());
        is_of_all.then_some(directory)
    }

    /// The value for the word that the variable is set to; that of the first word if it is not set.
    pub(crate) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, String> {
        let Some(value) = self.get(name) else { return Ok(words[0].1) };
        let known = words.iter().find(|(word, _)| *word == value);
        known.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            format!("{} and not one of {}", set_to(name, value), words.join(", "))
        })
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = value.to_str().and_then(|text| text.parse().ok());
        number
            .map(Some)
            .ok_or_else(|| format!("{}, which is not a valid number", set_to(name, value)))
    }
}

/// The variables of the process.
fn all_variables() -> impl Iterator<Item = &'static CStr> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: libc's variable; code that changes it while other threads run must make sure that none of
    // them reads it.
    let mut next = unsafe { environ };
    std::iter::from_fn(move || {
        // SAFETY: libc's list of C strings, which a null pointer ends.
        unsafe {
            let variable = *next.as_ref()?;
            next = next.add(1);
            (!variable.is_null()).then(|| CStr::from_ptr(variable))
        }
    })
}

#[unsafe(link_section = ".text.asleep")]
fn is_looked_at(variable: &[u8], reads: fn(&[u8]) -> bool) -> bool {
    let is_another = || OTHERS.iter().any(|name| value_of(variable, name).is_some());
    variable.starts_with(names::VARIABLES_BEGIN.as_bytes()) || is_another() || reads(variable)
}

/// The value of a variable (`NAME=value`), if that is its name.
pub(crate) fn value_of<'v>(variable: &'v [u8], name: &str) -> Option<&'v [u8]> {
    // In this order: every process compares all of its variables.
    let has_name = variable.get(name.len()) == Some(&b'=') && variable.starts_with(name.as_bytes());
    has_name.then(|| &variable[name.len() + 1..])
}

/// The setting in words, with all characters made safe for a terminal.
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
        let text = variables.iter().flat_map(|it| it.bytes().chain([0])).collect();
        let directory = Some("/at".into());
        Environment { variables: Cow::Owned(text), directory, stdout: None, copied_ns: 0 }
    }
}
