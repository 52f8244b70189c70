//! The user's settings for CUDA.

use std::path::PathBuf;
use std::sync::OnceLock;

use ggprof_spool::names;

use crate::config::Environment;

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

/// Level, and where CUPTI may be.
#[derive(Clone, Debug, Default)]
pub(crate) struct CudaConfig {
    pub(crate) level: CudaLevel,
    /// The tracing library to use (`GGPROF_CUPTI`).
    pub(crate) cupti: Option<PathBuf>,
    /// Where CUDA's toolkit may be.
    pub(crate) homes: Vec<PathBuf>,
    /// Where Pythons may be installed.
    pub(crate) python_prefixes: Vec<PathBuf>,
    /// ggml is to launch its kernels one by one. It asks only whether the variable is there.
    pub(crate) graphs_are_off: bool,
}

impl CudaLevel {
    #[unsafe(link_section = ".text.asleep")]
    pub(crate) fn from(environment: &Environment) -> Result<CudaLevel, String> {
        let words = [
            ("sample", CudaLevel::Sample),
            ("full", CudaLevel::Full),
            ("graph", CudaLevel::Graph),
            ("off", CudaLevel::Off),
        ];
        environment.word(names::CUDA, &words)
    }
}

impl CudaConfig {
    pub(super) fn from(environment: &Environment) -> Result<CudaConfig, String> {
        let path = |name| environment.path(name);
        let home = path("HOME").map(|home| home.join(".local"));
        let system = ["/usr/local", "/usr"].map(PathBuf::from);
        Ok(CudaConfig {
            level: CudaLevel::from(environment)?,
            cupti: path(names::CUPTI),
            homes: ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(path).collect(),
            python_prefixes: [path("VIRTUAL_ENV"), path("CONDA_PREFIX"), home]
                .into_iter()
                .flatten()
                .chain(system)
                .collect(),
            graphs_are_off: environment.get_even_empty(GRAPHS_OFF).is_some(),
        })
    }
}

/// What is looked at besides our own variables.
pub(super) const VARIABLES: &[&str] =
    &["CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", GRAPHS_OFF];

/// Of ggml.
const GRAPHS_OFF: &str = "GGML_CUDA_DISABLE_GRAPHS";

static SETTINGS: OnceLock<CudaConfig> = OnceLock::new();

pub(super) fn understand(environment: &Environment) -> Result<(), String> {
    let settings = CudaConfig::from(environment)?;
    let _ = SETTINGS.set(settings);
    Ok(())
}

/// Known where anything is recorded.
pub(super) fn settings() -> Option<&'static CudaConfig> {
    SETTINGS.get()
}

pub(super) fn level() -> CudaLevel {
    settings().map_or(CudaLevel::Off, |settings| settings.level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_one_of_four_words() {
        let of = |variable| CudaLevel::from(&Environment::of(&[variable]));
        assert_eq!(of("GGPROF_CUDA="), Ok(CudaLevel::Sample));
        assert_eq!(of("GGPROF_CUDA=graph"), Ok(CudaLevel::Graph));
        let problem = "GGPROF_CUDA is \"everything\" and not one of sample, full, graph, off";
        assert_eq!(of("GGPROF_CUDA=everything"), Err(problem.to_owned()));
    }
}
