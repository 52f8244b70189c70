//! Processes that the command started and that go on after it has ended, as daemons do. The recordings
//! of those that ggml is used in end with the command.

use super::{RecordedProcess, Spools};
use ggprof_spool::names;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

/// For those that are just ending, too.
const FOR_THEIR_END: Duration = Duration::from_millis(200);
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// A process that goes on.
pub(crate) struct Outliving {
    pub(crate) name: String,
    pub(crate) pid: u32,
}

/// Stops the recordings of those that go on: nobody takes care of them any more.
pub(crate) fn stop_recordings(spools: &Spools) -> Vec<Outliving> {
    let start = Instant::now();
    while start.elapsed() < FOR_THEIR_END && !RecordedProcess::alive(&spools.files()).is_empty() {
        std::thread::sleep(BETWEEN_LOOKS);
    }
    let go_on = RecordedProcess::alive(&spools.files()).into_iter();
    let go_on = go_on.filter(|recorded| matches!(recorded.is_recording(), Ok(true)));
    let stopped = go_on.filter(|recorded| recorded.stop().is_ok());
    stopped.map(|recorded| Outliving { name: name_of(recorded.pid), pid: recorded.pid }).collect()
}

/// The first that was started with the agent.
pub(crate) fn any(spools: &Spools) -> Option<Outliving> {
    let mut variable = OsString::from(format!("{}=", names::SPOOL));
    variable.push(spools.pattern());
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_it = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == variable.as_encoded_bytes())
    };
    pids.filter(has_it).min().map(|pid| Outliving { name: name_of(pid), pid })
}

fn name_of(pid: u32) -> String {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let name = program.file_name().unwrap_or(Path::new("a program").as_os_str());
    name.to_string_lossy().into_owned()
}
