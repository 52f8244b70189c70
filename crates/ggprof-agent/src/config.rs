//! The environment, read once when the agent is loaded: the program may change
//! its variables and its working directory later.

mod cuda;

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use ggprof_spool::layout;

pub(crate) use cuda::{CudaConfig, CudaLevel};

use crate::clock;
use crate::delivery::Delivery;
use crate::patch::loaded_object::LoadedObject;

/// Room for some eight million ops.
const LIBRARY_BYTES: u64 = 256 << 20;
/// One percent.
const DEFAULT_BUDGET_PERMILLE: u32 = 10;
/// Below that a file of limited size holds hardly more than descriptions.
const LEAST_BLOCKS: usize = 63;

/// How Vulkan devices are timed (`GGPROF_VULKAN`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Vulkan {
    /// Not at all: the agent stays out of Vulkan.
    Off,
    /// Where ggml itself synchronises.
    Group,
    /// Before and after each command.
    Pair,
    /// One command at a time.
    Serial,
    /// As groups, but in some graphs only; of the others beginning and end.
    #[default]
    Sample,
}

impl Vulkan {
    fn from_environment() -> Vulkan {
        match std::env::var_os("GGPROF_VULKAN").as_deref().and_then(|mode| mode.to_str()) {
            Some("off") => Vulkan::Off,
            Some("pair") => Vulkan::Pair,
            Some("serial") => Vulkan::Serial,
            Some("group") => Vulkan::Group,
            _ => Vulkan::default(),
        }
    }
}

/// What `ggprof run` or `GGML_PROFILE` asked for.
#[derive(Debug)]
pub(crate) struct Config {
    /// Absolute; `%p` stands for the process id.
    spool: Vec<u8>,
    /// Keep each thread's share of each op (`GGPROF_THREADS=1`).
    pub(crate) threads: bool,
    /// Run other backends node by node (`GGPROF_SERIALIZE=1`).
    pub(crate) serialize: bool,
    pub(crate) purpose: Purpose,
    pub(crate) vulkan: Vulkan,
    pub(crate) cuda: CudaConfig,
    /// Thousandths of the time that sampling a device may take (`GGPROF_BUDGET`, in
    /// percent).
    pub(crate) budget_permille: u32,
    pub(crate) span: Span,
    /// The largest size of the file (`GGPROF_MAX_BYTES`).
    most_bytes: Option<u64>,
}

/// The part of the program's life to record (`GGPROF_START_AFTER_NS`, `GGPROF_DURATION_NS`,
/// `GGPROF_FIRST_GRAPH`, `GGPROF_LAST_GRAPH`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Not before this moment of `CLOCK_MONOTONIC`.
    pub(crate) start_ns: u64,
    /// From the first recorded graph run on.
    pub(crate) duration_ns: u64,
    /// Counted from 1.
    pub(crate) first_graph: u64,
    pub(crate) last_graph: u64,
}

impl Default for Span {
    /// All of it.
    fn default() -> Span {
        Span { start_ns: 0, duration_ns: u64::MAX, first_graph: 0, last_graph: u64::MAX }
    }
}

impl Span {
    /// Read when the agent is loaded, which is when the program's time begins.
    fn from_environment() -> Span {
        let all = Span::default();
        let now = || clock::nanoseconds(libc::CLOCK_MONOTONIC);
        Span {
            start_ns: number("GGPROF_START_AFTER_NS").map_or(0, |wait| now().saturating_add(wait)),
            duration_ns: number("GGPROF_DURATION_NS").unwrap_or(all.duration_ns),
            first_graph: number("GGPROF_FIRST_GRAPH").unwrap_or(all.first_graph),
            last_graph: number("GGPROF_LAST_GRAPH").unwrap_or(all.last_graph),
        }
    }

    pub(crate) fn is_limited(&self) -> bool {
        *self != Span::default()
    }
}

/// Who the recording is for.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// `ggprof run`, which takes it when the program has ended.
    Launcher,
    /// `GGML_PROFILE`: nobody waits for it but the program itself.
    Profile(Delivery),
    /// The program, which reads it through libggml-profiler while it runs.
    Library,
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn budget_permille() -> u32 {
    let percent = std::env::var("GGPROF_BUDGET").ok().and_then(|text| text.parse::<f64>().ok());
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    percent.map_or(DEFAULT_BUDGET_PERMILLE, |percent| (percent * 10.0) as u32)
}

impl Config {
    /// `None` without `GGPROF_SPOOL`, which comes first, and `GGML_PROFILE`: the agent
    /// stays inert.
    pub(crate) fn from_environment() -> Option<Config> {
        let spool = std::env::var_os("GGPROF_SPOOL").filter(|path| !path.is_empty());
        if let Some(spool) = spool {
            return Config::new(PathBuf::from(spool), Purpose::Launcher);
        }
        Config::new(temporary_spool(), Purpose::Profile(Delivery::from_environment()?))
    }

    /// For a program that asks for it by itself.
    pub(crate) fn for_library() -> Option<Config> {
        let mut config = Config::new(temporary_spool(), Purpose::Library)?;
        // Nobody waits for the program's end, and all that is read is read from the start.
        config.most_bytes.get_or_insert(LIBRARY_BYTES);
        Some(config)
    }

    fn new(spool: PathBuf, purpose: Purpose) -> Option<Config> {
        let spool = std::path::absolute(spool).ok()?;
        let on = |name| std::env::var_os(name).is_some_and(|v: OsString| v == "1");
        Some(Config {
            spool: spool.into_os_string().into_vec(),
            threads: on("GGPROF_THREADS"),
            serialize: on("GGPROF_SERIALIZE"),
            purpose,
            vulkan: Vulkan::from_environment(),
            cuda: CudaConfig::from_environment(),
            budget_permille: budget_permille(),
            span: Span::from_environment(),
            most_bytes: number("GGPROF_MAX_BYTES"),
        })
    }

    /// How many blocks the file may have; `None` without a limit.
    pub(crate) fn most_blocks(&self) -> Option<usize> {
        let bytes = usize::try_from(self.most_bytes?).ok()?.saturating_sub(layout::HEADER_BYTES);
        Some((bytes / layout::BLOCK_BYTES).max(LEAST_BLOCKS))
    }

    pub(crate) fn options(&self) -> u32 {
        let mut options = 0;
        if self.threads {
            options |= layout::OPTION_THREADS;
        }
        if self.serialize {
            options |= layout::OPTION_SERIALIZE;
        }
        options
    }

    /// Where recordings are made, if that is one place for all processes.
    pub(crate) fn directory(&self) -> Option<&Path> {
        let directory = Path::new(OsStr::from_bytes(&self.spool)).parent()?;
        let of_all = !directory.as_os_str().as_bytes().windows(2).any(|pair| pair == b"%p");
        of_all.then_some(directory)
    }

    /// The path for this process. Attempts after the first get a suffix: the
    /// file is only ever created, never opened over another recording.
    pub(crate) fn spool_path(&self, pid: u32, attempt: u32) -> CString {
        let mut path = Vec::with_capacity(self.spool.len() + 16);
        let mut rest = self.spool.as_slice();
        while let Some(at) = rest.windows(2).position(|pair| pair == b"%p") {
            path.extend_from_slice(&rest[..at]);
            path.extend_from_slice(pid.to_string().as_bytes());
            rest = &rest[at + 2..];
        }
        path.extend_from_slice(rest);
        if attempt > 0 {
            path.extend_from_slice(format!(".{attempt}").as_bytes());
        }
        // An environment value holds no zero byte.
        CString::new(path).unwrap_or_default()
    }
}

/// A file that only the user can read, for a recording that is turned into something
/// else later. `ggprof doctor` finds those of programs that were killed before.
fn temporary_spool() -> PathBuf {
    std::env::temp_dir().join("ggprof-%p.ggprof")
}

/// The file this agent was loaded from.
pub(crate) fn own_path() -> PathBuf {
    let object = LoadedObject::containing(own_path as *const () as usize);
    let name = object.map(|object| OsString::from_vec(object.name.into_bytes()));
    let path = PathBuf::from(name.unwrap_or_default());
    path.canonicalize().unwrap_or(path)
}

/// The command's name without its arguments: prompts are never stored.
pub(crate) fn command_name() -> Vec<u8> {
    let program = std::fs::read_link("/proc/self/exe").ok();
    let name = program.as_deref().and_then(|path| path.file_name());
    name.map(|name| name.as_bytes().to_vec()).unwrap_or_default()
}

/// The processor as its vendor names it.
pub(crate) fn cpu_name() -> Vec<u8> {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    name.unwrap_or_default().as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_id_replaces_every_mark() {
        let config = Config::new("/tmp/%p/a-%p.spool".into(), Purpose::Launcher);
        let config = config.expect("an absolute path");
        assert_eq!(config.spool_path(42, 0).as_bytes(), b"/tmp/42/a-42.spool");
        assert_eq!(config.spool_path(42, 3).as_bytes(), b"/tmp/42/a-42.spool.3");
    }
}
