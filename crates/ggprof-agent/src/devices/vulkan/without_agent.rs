//! A program that was started without the agent: the program that started it removed `LD_PRELOAD`
//! from the environment, but kept the variable that announces the layer. So the Vulkan loader has
//! opened the agent in the running program. The program is not recorded. A file beside the
//! recordings says so, and `ggprof run` need not guess why there is nothing.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ggprof_spool::{beside, names};

use super::registration;
use crate::config;
use crate::recorder::current;

/// The program has made an instance for ggml.
pub(crate) fn note_use_of_ggml() {
    if current::is_late() {
        let _ = tell();
    }
}

/// Leaves the file in a directory that the launcher made for this, and nowhere else. Doing it twice
/// changes nothing.
fn tell() -> Option<()> {
    // As the process was started: its threads may be changing the environment now.
    let environment = std::fs::read("/proc/self/environ").ok()?;
    let mut variables = environment.split(|&byte| byte == 0);
    let spool = variables.find_map(|variable| config::value_of(variable, names::SPOOL))?;
    let directory = Path::new(OsStr::from_bytes(spool)).parent()?;
    if !registration::is_ours_alone(directory) {
        return None;
    }
    let file = beside::without_agent(directory, std::process::id());
    let mut open = OpenOptions::new();
    open.write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    open.open(file).ok()?.write_all(&config::command_name()).ok()
}
