//! The memory that tensors are in.

use super::ProcessIndex;
use serde::{Deserialize, Serialize};

/// A buffer of ggml's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Whose memory it is; `CPU` for the host's.
    pub device: String,
    /// As ggml calls the kind of memory: `CPU`, `CPU_Mapped`, `CUDA_Host`, `Vulkan0`.
    pub type_name: String,
    pub usage: BufferUsage,
    pub bytes: u64,
    /// The name of the first tensor in it; empty where none was seen.
    pub tensor: String,
    pub born_ns: u64,
    /// `None` while it lives.
    pub died_ns: Option<u64>,
    /// Who had it; `None` where there is one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessIndex>,
}

/// How much memory a device said was free, when the program asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreeMemory {
    pub device: String,
    pub free_bytes: u64,
    pub total_bytes: u64,
    pub at_ns: u64,
    /// Whom it was told; `None` where there is one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessIndex>,
}

/// What the program told ggml that a buffer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BufferUsage {
    Any,
    Weights,
    Compute,
    /// ggml does not say.
    Unknown,
}

impl Buffer {
    /// Whether it was there at a moment.
    pub fn lives_at(&self, ns: u64) -> bool {
        self.born_ns <= ns && self.died_ns.is_none_or(|died| died > ns)
    }
}
