//! What concerns CUDA devices.

use std::path::PathBuf;

use super::Environment;

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
}

impl CudaLevel {
    pub(crate) fn from(environment: &Environment) -> Result<CudaLevel, String> {
        let words = [
            ("sample", CudaLevel::Sample),
            ("full", CudaLevel::Full),
            ("graph", CudaLevel::Graph),
            ("off", CudaLevel::Off),
        ];
        environment.word("GGPROF_CUDA", &words)
    }
}

impl CudaConfig {
    pub(super) fn from(environment: &Environment) -> Result<CudaConfig, String> {
        let path = |name| environment.path(name);
        let home = path("HOME").map(|home| home.join(".local"));
        let system = ["/usr/local", "/usr"].map(PathBuf::from);
        Ok(CudaConfig {
            level: CudaLevel::from(environment)?,
            cupti: path("GGPROF_CUPTI"),
            homes: ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(path).collect(),
            python_prefixes: [path("VIRTUAL_ENV"), path("CONDA_PREFIX"), home]
                .into_iter()
                .flatten()
                .chain(system)
                .collect(),
        })
    }
}
