//! Names that the command and the agent have to agree on: of environment variables, and of the files
//! that recordings are. What the variables may be set to is said where they are read.

use std::ffi::CStr;

/// What the names of all variables of ggprof's own begin with.
pub const VARIABLES_BEGIN: &str = "GGPROF_";

/// The recording's file, with `%p` for the process (`place`). `run`, `attach` and `doctor` set it; the
/// agent reads it, and `run` to find processes that outlive it.
pub const SPOOL: &str = match SPOOL_IN_C.to_str() {
    Ok(name) => name,
    Err(_) => panic!("it is plain text"),
};
/// As C asks for it.
pub const SPOOL_IN_C: &CStr = c"GGPROF_SPOOL";

/// Whether to keep what each thread did (`1`). `run` and `attach` set it, the agent reads it.
pub const THREADS: &str = "GGPROF_THREADS";
/// Whether to run one op at a time (`1`). `run` sets it, the agent reads it.
pub const SERIALIZE: &str = "GGPROF_SERIALIZE";
/// Whether to wait for `ctl start` (`1`). `run` sets it, the agent reads it.
pub const PAUSED: &str = "GGPROF_PAUSED";
/// After how long to begin, from the loading of the agent on. `run` sets it, the agent reads it.
pub const START_AFTER_NS: &str = "GGPROF_START_AFTER_NS";
/// For how long to record. `run` sets it, the agent reads it.
pub const DURATION_NS: &str = "GGPROF_DURATION_NS";
/// The first graph run to record, counted from 1. `run` sets it, the agent reads it.
pub const FIRST_GRAPH: &str = "GGPROF_FIRST_GRAPH";
/// The last one. `run` sets it, the agent reads it.
pub const LAST_GRAPH: &str = "GGPROF_LAST_GRAPH";
/// The largest size of a recording. `run`, `attach` and users of libggml-profiler set it, the agent
/// reads it.
pub const MAX_BYTES: &str = "GGPROF_MAX_BYTES";
/// The share of time that sampling may take, in percent. `run` and `attach` set it, the agent reads it.
pub const BUDGET: &str = "GGPROF_BUDGET";
/// How closely CUDA devices are watched. `run` and `attach` set it, the agent reads it.
pub const CUDA: &str = "GGPROF_CUDA";
/// Which file is CUPTI. Users set it, the agent reads it.
pub const CUPTI: &str = "GGPROF_CUPTI";
/// How Vulkan devices are timed. `run` and `attach` set it, the agent reads it.
pub const VULKAN: &str = "GGPROF_VULKAN";
/// Whether the recording ends with the launcher (`1`). `attach` sets it, the agent reads it.
pub const ENDS_WITH_LAUNCHER: &str = "GGPROF_ENDS_WITH_LAUNCHER";
/// The command that writes what `GGML_PROFILE` asks for. `env` prints it for shells to set; the agent
/// reads it.
pub const COMMAND: &str = "GGPROF_COMMAND";
/// Which file is the agent. Users set it, the command reads it.
pub const AGENT: &str = "GGPROF_AGENT";
/// The steps that fail, in an agent that was built with `inject-faults`. Tests set it.
pub const FAULT_AT: &str = "GGPROF_FAULT_AT";
/// The file that such an agent writes its steps to. Tests set it.
pub const FAULT_LOG: &str = "GGPROF_FAULT_LOG";

/// What the name of a recording ends with. A second recording of one process has a number behind it.
pub const RECORDING_ENDING: &str = ".ggprof";
/// The same without the dot.
pub const RECORDING_EXTENSION: &str = RECORDING_ENDING.split_at(1).1;
/// What the names of ggprof's files and directories begin with where other programs have theirs, too.
pub const AMONG_OTHERS_BEGIN: &str = "ggprof-";
/// A process's recording in a directory of ggprof's.
pub const RECORDING: &str = "%p.ggprof";
/// The same in a directory for files of all programs.
pub const RECORDING_AMONG_OTHERS: &str = "ggprof-%p.ggprof";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_their_parts() {
        assert_eq!(RECORDING, format!("%p{RECORDING_ENDING}"));
        assert_eq!(RECORDING_AMONG_OTHERS, format!("{AMONG_OTHERS_BEGIN}{RECORDING}"));
        assert_eq!(format!(".{RECORDING_EXTENSION}"), RECORDING_ENDING);
    }
}
