//! The functions that are put into backends and their libraries so that their work is seen.
//! `observe` decides when to install them and remembers the originals; `hooks` provides the
//! functions.

use ggprof_spool::layout::{CoveredHow, Why};

use crate::ffi::backend_table::{CpyTensorAsync, Free, GraphCompute};
use crate::patch::loaded_object::LoadedObject;

/// Stand-ins for functions of a backend's table, and ways to hook its library.
#[derive(Debug)]
pub(crate) struct BackendHooks {
    pub(crate) graph_compute: GraphCompute,
    pub(crate) cpy_tensor_async: CpyTensorAsync,
    pub(crate) free: Free,
    /// The ops of a library that computes on the processor.
    pub(crate) ops: fn(&LoadedObject) -> HookedOps,
    /// The questions of a device's library about its nodes; false where it asks none.
    pub(crate) nodes: fn(&LoadedObject) -> bool,
}

/// What could be hooked in a library.
#[derive(Clone, Debug)]
pub(crate) struct HookedOps {
    pub(crate) how: CoveredHow,
    pub(crate) ops: bool,
    pub(crate) barrier: bool,
    pub(crate) forward: u32,
    /// Why ops are not seen, when they are not.
    pub(crate) reason: Why<'static>,
}

impl HookedOps {
    pub(crate) fn not(reason: Why<'static>) -> HookedOps {
        HookedOps { how: CoveredHow::Not, ops: false, barrier: false, forward: 0, reason }
    }
}
