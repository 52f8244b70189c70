//! Running a command under its disturbances: how it ended, what it printed, what it left behind.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::arrangement::Place;
use super::disturbance::{Disturbance, Target};
use super::processes;

const BETWEEN_LOOKS: Duration = Duration::from_millis(4);
/// For children to be gone after their parent.
const GRACE: Duration = Duration::from_secs(5);

/// What a run was.
#[derive(Debug)]
pub(super) struct Ran {
    /// As a shell gives it.
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
    pub(super) hung: bool,
    pub(super) time: Duration,
    /// The most address space that the program had.
    pub(super) peak_bytes: u64,
    /// Processes and files that were still there.
    pub(super) left: Vec<String>,
}

/// How to run.
#[derive(Debug)]
pub(super) struct Manner<'a> {
    pub(super) has_launcher: bool,
    pub(super) disturbances: &'a [Disturbance],
    pub(super) usual: Duration,
    pub(super) limit: Duration,
    /// The program may go on without its launcher.
    pub(super) outlives_launcher: bool,
}

pub(super) fn run(mut command: Command, place: &Place, manner: &Manner<'_>) -> Ran {
    let mark = place.at("").display().to_string();
    let file = |name| File::create(place.at(name)).expect("the directory is ours");
    command.env(processes::MARK, &mark).stdin(Stdio::null());
    command.stdout(file("out")).stderr(file("err"));
    let begun = Instant::now();
    let mut child = command.spawn().expect("it starts");
    let mut watched = Watched::default();
    let status =
        disturbed(&mut child, place, manner, |child| watched.wait(child, place, &mark, manner));
    let time = begun.elapsed();
    let left = watched.left_behind(place, &mark);
    let text = |name| {
        String::from_utf8_lossy(&std::fs::read(place.at(name)).unwrap_or_default()).into_owned()
    };
    let code = status.map_or(-1, code_of);
    let Watched { hung, peak_bytes, .. } = watched;
    Ran { code, out: text("out"), err: text("err"), hung, time, peak_bytes, left }
}

/// Disturbs from threads beside, until the work is over.
fn disturbed<R>(
    child: &mut Child,
    place: &Place,
    manner: &Manner<'_>,
    work: impl FnOnce(&mut Child) -> R,
) -> R {
    let over = AtomicBool::new(false);
    let target = Target {
        started: child.id(),
        has_launcher: manner.has_launcher,
        usual: manner.usual,
        runtime: place.at("runtime"),
        snapshots: place.at("files"),
        over: &over,
    };
    std::thread::scope(|scope| {
        for disturbance in manner.disturbances {
            scope.spawn(|| disturbance.apply(&target));
        }
        let result = work(child);
        over.store(true, Ordering::Relaxed);
        result
    })
}

/// What was seen while it ran.
#[derive(Debug, Default)]
struct Watched {
    hung: bool,
    program: Option<u32>,
    peak_bytes: u64,
    /// The directory of temporary files as the process sees it, mounts of its own included.
    temporary: Option<File>,
}

impl Watched {
    fn wait(
        &mut self,
        child: &mut Child,
        place: &Place,
        mark: &str,
        manner: &Manner<'_>,
    ) -> Option<ExitStatus> {
        let begun = Instant::now();
        let mut ended = None;
        loop {
            ended = ended.or_else(|| child.try_wait().expect("it is our child"));
            let goes_on = manner.outlives_launcher && !processes::marked(mark).is_empty();
            if ended.is_some() && !goes_on {
                return ended;
            }
            if begun.elapsed() > manner.limit {
                self.hung = true;
                describe(mark, &place.at("hung"));
                end_all(mark);
                return child.wait().ok();
            }
            self.look(child.id(), place);
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    fn look(&mut self, started: u32, place: &Place) {
        self.program = self.program.or_else(|| processes::program_of(started));
        let Some(program) = self.program else { return };
        self.peak_bytes = self.peak_bytes.max(processes::peak_bytes(program).unwrap_or(0));
        if self.temporary.is_none() {
            let path = place.at("temporary").display().to_string();
            self.temporary = File::open(format!("/proc/{started}/root{path}")).ok();
        }
    }

    fn left_behind(&self, place: &Place, mark: &str) -> Vec<String> {
        let begun = Instant::now();
        while begun.elapsed() < GRACE && !processes::marked(mark).is_empty() {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        let names = processes::marked(mark).into_iter().filter_map(processes::name);
        let mut left: Vec<String> = names.map(|name| format!("process {name}")).collect();
        end_all(mark);
        let seen =
            self.temporary.as_ref().map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()));
        let temporary = seen.map_or_else(|| place.at("temporary"), Into::into);
        left.extend(names_in(&temporary));
        left.extend(names_in(&place.at("runtime/ggprof")));
        left
    }
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn code_of(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// Ends what is left of a run.
fn end_all(mark: &str) {
    for pid in processes::marked(mark) {
        processes::signal(pid, Signal::KILL);
    }
}

/// Where the threads of processes that hang are, as far as a debugger can tell.
fn describe(mark: &str, file: &Path) {
    let mut text = String::new();
    for pid in processes::marked(mark) {
        processes::signal(pid, Signal::CONT);
        let name = processes::name(pid).unwrap_or_default();
        let words = ["-p", &pid.to_string(), "-batch", "-ex", "thread apply all bt"];
        let stacks = Command::new("gdb").args(words).stdin(Stdio::null()).output();
        let stacks = stacks.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
        text.push_str(&format!("{pid} {name}\n{}\n", stacks.unwrap_or_default()));
    }
    _ = std::fs::write(file, text);
}
