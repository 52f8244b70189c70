//! What `GGML_PROFILE` asks for, prepared in advance: at the time of delivery nothing may be
//! allocated.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ggprof_spool::names;

use super::Environment;
use crate::patch::loaded_object;

/// What `GGML_PROFILE` asked for, and how to do it.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) command: CString,
    /// `None`: the summary, on standard output.
    pub(crate) output: Option<CString>,
    pub(crate) environment: Vec<CString>,
    /// Where the program was started; its relative paths start there.
    pub(crate) directory: CString,
    pub(crate) stdout: Option<(u64, u64)>,
}

impl Delivery {
    pub(crate) fn new(environment: &Environment) -> Delivery {
        let value = environment.get_even_empty(ggprof_ggml::PROFILE_VARIABLE).unwrap_or_default();
        let c_string = |text: &OsStr| CString::new(text.as_bytes()).unwrap_or_default();
        let kept = ["TMPDIR", "TERM", "NO_COLOR", "HOME", "LANG", "LC_ALL"].iter();
        let kept = kept.filter_map(|name| {
            let mut entry = OsString::from(format!("{name}="));
            entry.push(environment.get_even_empty(name)?);
            Some(c_string(&entry))
        });
        Delivery {
            command: c_string(command(environment).as_os_str()),
            output: ggprof_ggml::profile_file(value).map(c_string),
            environment: kept.collect(),
            directory: c_string(environment.directory().unwrap_or(Path::new("/")).as_os_str()),
            stdout: environment.stdout(),
        }
    }
}

/// The `ggprof` that `ggprof env` named, or else the one installed with this agent.
fn command(environment: &Environment) -> PathBuf {
    if let Some(path) = environment.path(names::COMMAND) {
        return path;
    }
    let agent = loaded_object::own_path();
    let directory = agent.parent().unwrap_or(Path::new("/"));
    // Beside it where it was built, or as part of a library in lib.
    let places = ["ggprof", "../bin/ggprof"].map(|place| directory.join(place));
    let found = places.iter().find(|place| place.is_file());
    found.or(places.first()).cloned().unwrap_or_default()
}
