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
