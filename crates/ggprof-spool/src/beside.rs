//! Other files in a directory of recordings, for the launcher.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const WITHOUT_AGENT: &str = "without-agent";

/// The file by which a process tells that it uses ggml and was started without the agent. Its
/// content is the program's name.
pub fn without_agent(directory: &Path, pid: u32) -> PathBuf {
    directory.join(format!("{pid}.{WITHOUT_AGENT}"))
}

pub fn tells_of_process_without_agent(file: &Path) -> bool {
    file.extension() == Some(OsStr::new(WITHOUT_AGENT))
}
