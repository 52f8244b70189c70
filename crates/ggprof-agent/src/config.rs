//! The environment, read once when the agent is loaded: the program may change
//! its variables and its working directory later.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use ggprof_spool::layout;

/// What `ggprof run` asked for.
#[derive(Debug)]
pub(crate) struct Config {
    /// Absolute; `%p` stands for the process id.
    spool: Vec<u8>,
    /// Keep each thread's share of each op (`GGPROF_THREADS=1`).
    pub(crate) threads: bool,
    /// Run other backends node by node (`GGPROF_SERIALIZE=1`).
    pub(crate) serialize: bool,
    pub(crate) cuda: CudaConfig,
}

/// How closely CUDA devices are watched (`GGPROF_CUDA`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CudaLevel {
    Off,
    /// The time of each split on its device.
    Graph,
    /// Every kernel, in windows that stay within a budget of time.
    #[default]
    Sample,
    /// Every kernel.
    Full,
}

/// What concerns CUDA devices.
#[derive(Clone, Debug, Default)]
pub(crate) struct CudaConfig {
    pub(crate) level: CudaLevel,
    /// Thousandths of the time that `Sample` may take (`GGPROF_CUDA_BUDGET`, in
    /// percent).
    pub(crate) budget_permille: u32,
    /// The tracing library to use (`GGPROF_CUPTI`).
    pub(crate) cupti: Option<PathBuf>,
    /// Where CUDA's toolkit may be.
    pub(crate) homes: Vec<PathBuf>,
    /// Where Pythons may be installed.
    pub(crate) python_prefixes: Vec<PathBuf>,
}

/// One percent.
const DEFAULT_BUDGET_PERMILLE: u32 = 10;

impl CudaConfig {
    fn from_environment() -> CudaConfig {
        let path = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let level = match std::env::var("GGPROF_CUDA").as_deref() {
            Ok("off") => CudaLevel::Off,
            Ok("graph") => CudaLevel::Graph,
            Ok("full") => CudaLevel::Full,
            _ => CudaLevel::Sample,
        };
        let budget = std::env::var("GGPROF_CUDA_BUDGET").ok();
        let percent = budget.and_then(|text| text.parse::<f64>().ok());
        let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
        let home = path("HOME").map(|home| home.join(".local"));
        let system = ["/usr/local", "/usr"].map(PathBuf::from);
        CudaConfig {
            level,
            budget_permille: percent.map_or(DEFAULT_BUDGET_PERMILLE, |p| (p * 10.0) as u32),
            cupti: path("GGPROF_CUPTI"),
            homes: ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(path).collect(),
            python_prefixes: [path("VIRTUAL_ENV"), path("CONDA_PREFIX"), home]
                .into_iter()
                .flatten()
                .chain(system)
                .collect(),
        }
    }
}

impl Config {
    /// `None` without `GGPROF_SPOOL`: the agent stays inert.
    pub(crate) fn from_environment() -> Option<Config> {
        let spool = std::env::var_os("GGPROF_SPOOL").filter(|path| !path.is_empty())?;
        let spool = std::path::absolute(PathBuf::from(spool)).ok()?;
        let on = |name| std::env::var_os(name).is_some_and(|v: OsString| v == "1");
        Some(Config {
            spool: spool.into_os_string().into_vec(),
            threads: on("GGPROF_THREADS"),
            serialize: on("GGPROF_SERIALIZE"),
            cuda: CudaConfig::from_environment(),
        })
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
        let spool = b"/tmp/%p/a-%p.spool".to_vec();
        let config =
            Config { spool, threads: false, serialize: false, cuda: CudaConfig::default() };
        assert_eq!(config.spool_path(42, 0).as_bytes(), b"/tmp/42/a-42.spool");
        assert_eq!(config.spool_path(42, 3).as_bytes(), b"/tmp/42/a-42.spool.3");
    }
}
