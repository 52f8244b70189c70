//! The settings: the variables of the environment, and what they mean. A value that is not
//! understood is refused with a sentence, because a recording with other settings than the user's
//! is worse than none.

mod delivery;
mod environment;

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use ggprof_spool::{layout, names, place};

pub(crate) use delivery::Delivery;
use environment::set_to;
pub(crate) use environment::{Environment, identity_of_stdout, value_of};

/// Room for some eight million ops.
const LIBRARY_BYTES: u64 = 256 << 20;
/// One percent.
const DEFAULT_BUDGET_PERMILLE: u32 = 10;
/// The smallest limit that leaves room for events beside the descriptions.
const LEAST_BLOCKS: usize = 63;

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
    /// Thousandths of the time that sampling a device may take (`GGPROF_BUDGET`, in
    /// percent).
    pub(crate) budget_permille: u32,
    pub(crate) span: Span,
    /// Record nothing until somebody asks for it (`GGPROF_PAUSED=1`).
    pub(crate) paused: bool,
    /// The program ran already when the agent was loaded.
    attached: bool,
    /// Record nothing more once the launcher is gone (`GGPROF_ENDS_WITH_LAUNCHER=1`).
    ends_with_launcher: bool,
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
    /// The program's time begins when the agent is loaded.
    fn from(environment: &Environment) -> Result<Span, String> {
        let number = |name, otherwise: u64| -> Result<u64, String> {
            Ok(environment.number(name)?.unwrap_or(otherwise))
        };
        let wait = environment.number(names::START_AFTER_NS)?;
        let all = Span::default();
        Ok(Span {
            start_ns: wait.map_or(0, |wait| environment.copied_ns().saturating_add(wait)),
            duration_ns: number(names::DURATION_NS, all.duration_ns)?,
            first_graph: number(names::FIRST_GRAPH, all.first_graph)?,
            last_graph: number(names::LAST_GRAPH, all.last_graph)?,
        })
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
    /// `GGML_PROFILE`: there is no launcher, only the program itself.
    Profile(Delivery),
    /// The program, which reads it through libggml-profiler while it runs.
    Library,
}

fn budget_permille(environment: &Environment) -> Result<u32, String> {
    let Some(value) = environment.get(names::BUDGET) else { return Ok(DEFAULT_BUDGET_PERMILLE) };
    let permille = value.to_str().and_then(permille).filter(|permille| *permille <= 1000);
    permille.ok_or_else(|| format!("{}, which is not a percentage", set_to(names::BUDGET, value)))
}

/// Thousandths of a number of percent; digits behind the first one are cut off. By hand, because Rust's
/// reader and writer of fractions are forty kilobytes, and this is the only one that the agent reads.
fn permille(percent: &str) -> Option<u32> {
    let (whole, fraction) = percent.split_once('.').unwrap_or((percent, "0"));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    let tenths = if is_number(fraction) { fraction.get(..1)?.parse().ok()? } else { return None };
    let whole = Some(whole).filter(|whole| is_number(whole))?.parse::<u32>().ok()?;
    whole.checked_mul(10)?.checked_add(tenths)
}

impl Config {
    /// `GGPROF_SPOOL` comes first, then `GGML_PROFILE`.
    pub(crate) fn understand(environment: &Environment) -> Result<Config, String> {
        match environment.path(names::SPOOL) {
            Some(spool) => Config::new(environment, spool, Purpose::Launcher),
            None => {
                let purpose = Purpose::Profile(Delivery::new(environment));
                Config::new(environment, temporary_spool(environment), purpose)
            }
        }
    }

    /// The same for a program that runs already.
    pub(crate) fn for_running(environment: &Environment) -> Result<Config, String> {
        Ok(Config { attached: true, ..Config::understand(environment)? })
    }

    /// For a program that starts its own recording (C API).
    pub(crate) fn for_library(environment: &Environment) -> Result<Config, String> {
        let spool = temporary_spool(environment);
        let mut config = Config::new(environment, spool, Purpose::Library)?;
        // The program may run for ever, and each question reads the recording from its start.
        config.most_bytes.get_or_insert(LIBRARY_BYTES);
        Ok(config)
    }

    fn new(environment: &Environment, spool: PathBuf, purpose: Purpose) -> Result<Config, String> {
        let on = |name| environment.word(name, &[("0", false), ("1", true)]);
        let absolute = environment.absolute(&spool);
        let spool = absolute
            .ok_or("the directory that GGPROF_SPOOL is relative to does not exist any more")?;
        Ok(Config {
            spool: spool.into_os_string().into_vec(),
            threads: on(names::THREADS)?,
            serialize: on(names::SERIALIZE)?,
            purpose,
            budget_permille: budget_permille(environment)?,
            span: Span::from(environment)?,
            paused: on(names::PAUSED)?,
            attached: false,
            ends_with_launcher: on(names::ENDS_WITH_LAUNCHER)?,
            most_bytes: environment.number(names::MAX_BYTES)?,
        })
    }

    /// How many blocks the file may have; `None` without a limit.
    pub(crate) fn most_blocks(&self) -> Option<usize> {
        let bytes = usize::try_from(self.most_bytes?).ok()?.saturating_sub(layout::HEADER_BYTES);
        Some((bytes / layout::BLOCK_BYTES).max(LEAST_BLOCKS))
    }

    /// The directory that the launcher holds for as long as it is there, where the recording ends with it.
    pub(crate) fn held_by_launcher(&self) -> Option<PathBuf> {
        let spool = Path::new(OsStr::from_bytes(&self.spool));
        self.ends_with_launcher.then(|| spool.parent().map(Path::to_owned)).flatten()
    }

    pub(crate) fn options(&self) -> u32 {
        let mut options = 0;
        if self.threads {
            options |= layout::OPTION_THREADS;
        }
        if self.serialize {
            options |= layout::OPTION_SERIALIZE;
        }
        if self.attached {
            options |= layout::OPTION_ATTACHED;
        }
        options
    }

    /// The path for this process. Attempts after the first get a suffix: the
    /// file is only ever created, never opened over another recording.
    pub(crate) fn spool_path(&self, pid: u32, attempt: u32) -> CString {
        let mut path = place::of_process(&self.spool, pid);
        if attempt > 0 {
            path.extend_from_slice(format!(".{attempt}").as_bytes());
        }
        // An environment value holds no zero byte.
        CString::new(path).unwrap_or_default()
    }
}

/// A file that only the user can read, for a recording that is turned into something
/// else later. `ggprof doctor` finds those of programs that were killed before.
fn temporary_spool(environment: &Environment) -> PathBuf {
    environment.temporary_directory().join(names::RECORDING_AMONG_OTHERS)
}

/// The command's name without its arguments: prompts are never stored.
pub(crate) fn command_name() -> Vec<u8> {
    // The first knows nothing any more once the process's first thread has ended.
    let known = ["/proc/self/exe", "/proc/thread-self/exe"];
    let program = known.iter().find_map(|path| std::fs::read_link(path).ok());
    let name = program.as_deref().and_then(|path| path.file_name());
    name.map(|name| name.as_bytes().to_vec()).unwrap_or_default()
}

/// The processor as its vendor names it.
pub(crate) fn cpu_name() -> Vec<u8> {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    ggprof_spool::cpu_name::of_cpuinfo(&info).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(variables: &[&str]) -> Result<Config, String> {
        Config::understand(&Environment::of(variables))
    }

    #[test]
    fn the_process_id_replaces_every_mark() {
        let config = understood(&["GGPROF_SPOOL=/tmp/%p/a-%p.spool"]).expect("understood");
        assert_eq!(config.spool_path(42, 0).as_bytes(), b"/tmp/42/a-42.spool");
        assert_eq!(config.spool_path(42, 3).as_bytes(), b"/tmp/42/a-42.spool.3");
        let config = understood(&["GGPROF_SPOOL=a-%p"]).expect("understood");
        assert_eq!(config.spool_path(42, 0).as_bytes(), b"/at/a-42");
    }

    #[test]
    fn a_budget_is_read_to_a_tenth_of_a_percent() {
        let read = ["0", "1", "2.5", "0.09", "99.99", "100", "100.0"].map(permille);
        assert_eq!(read.map(Option::unwrap_or_default), [0, 10, 25, 0, 999, 1000, 1000]);
        let refused = ["", ".", ".5", "5.", "+1", "-1", "1.x", "1.5.5", "1e1", "9999999999"];
        refused.iter().for_each(|text| assert_eq!(permille(text), None, "{text}"));
    }

    #[test]
    fn what_is_empty_is_not_set() {
        let config = understood(&["GGML_PROFILE=", "GGPROF_SPOOL=", "TMPDIR=/t"]);
        let config = config.expect("understood");
        assert!(matches!(config.purpose, Purpose::Profile(_)));
        assert_eq!(config.spool_path(1, 0).as_bytes(), b"/t/ggprof-1.ggprof");
    }

    #[test]
    fn words_that_mean_nothing_are_refused() {
        let long = format!("GGPROF_THREADS={}", "a\x1b".repeat(1000));
        for (variable, problem) in [
            ("GGPROF_MAX_BYTES=ten", "GGPROF_MAX_BYTES is \"ten\", which is not a valid number"),
            ("GGPROF_LAST_GRAPH=-1", "GGPROF_LAST_GRAPH is \"-1\", which is not a valid number"),
            ("GGPROF_BUDGET=101", "GGPROF_BUDGET is \"101\", which is not a percentage"),
            ("GGPROF_BUDGET=NaN", "GGPROF_BUDGET is \"NaN\", which is not a percentage"),
            ("GGPROF_THREADS=yes", "GGPROF_THREADS is \"yes\" and not one of 0, 1"),
            (
                &long,
                "GGPROF_THREADS is \"a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?…\" \
                 and not one of 0, 1",
            ),
        ] {
            let found = understood(&["GGPROF_SPOOL=/a", variable]).err();
            assert_eq!(found.as_deref(), Some(problem));
        }
    }
}
