//! How each part of the program was observed.

pub use ggprof_spool::layout::{Covered, CoveredHow, CoveredWhy};

/// Whether and how something of the program was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// A backend's label, or a library for what belongs to no backend.
    pub subject: String,
    pub what: Covered,
    pub how: CoveredHow,
    pub why: CoveredWhy,
    /// What is to be shown beside the reason, or instead of one that is not told; nothing may be
    /// decided by it.
    pub detail: String,
}

impl Coverage {
    pub fn is_observed(&self) -> bool {
        self.how != CoveredHow::Not
    }
}

/// A short name. JSON files have it as a key, so it must not change.
pub fn what_key(what: Covered) -> &'static str {
    match what {
        Covered::Splits => "splits",
        Covered::Ops => "ops",
        Covered::BarrierWaits => "barrier waits",
        Covered::Fusions => "fusions",
        Covered::AsyncCopies => "asynchronous copies",
        Covered::Layout => "struct layouts",
        Covered::Copies => "copies",
        Covered::Kernels => "kernels",
        Covered::Memory => "buffers",
        Covered::Placement => "placement",
        Covered::Experts => "experts",
    }
}

/// The same of a way.
pub fn how_key(how: CoveredHow) -> &'static str {
    match how {
        CoveredHow::Not => "not",
        CoveredHow::FunctionTable => "function table",
        CoveredHow::GotSlot => "GOT slot",
        CoveredHow::Serialized => "serialized",
        CoveredHow::Probed => "probed",
        CoveredHow::AbortCallback => "abort callback, first thread only",
        CoveredHow::SymbolName => "symbol name",
        CoveredHow::DeviceTimestamps => "timestamps of the device",
        CoveredHow::ActivityRecords => "activity records of the device",
        CoveredHow::InlineHook => "function entry",
        CoveredHow::NodeByNode => "node by node",
        CoveredHow::Asked => "asked",
    }
}
