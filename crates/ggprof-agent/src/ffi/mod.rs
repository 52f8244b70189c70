//! Everything foreign: ggml's functions, its struct layouts, the dynamic loader's, and those of
//! CUDA (`cupti`, `cuda_driver`). Nothing here is fixed per ggml version: functions are looked up
//! by name in the target, offsets are found by `probe`, in children (`rehearsal`).

pub(crate) mod api;
pub(crate) mod backend_table;
pub(crate) mod cuda_driver;
pub(crate) mod cupti;
pub(crate) mod graph;
pub(crate) mod probe;
pub(crate) mod rehearsal;
pub(crate) mod tensor;
pub(crate) mod vulkan;
pub(crate) mod which_ggml;
