//! What is missing from a recording. Losses are data: every report shows them.

/// A kind of loss with how often it happened and the first case in detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    pub kind: LossKind,
    pub count: u64,
    /// The first case, for the reader of the report: where it was and what was wrong.
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LossKind {
    /// The file ends before the recording does.
    Truncated,
    /// A record could not be understood and is left out.
    DamagedRecord,
    /// Text was not UTF-8 or held raw control characters; it is shown with replacements.
    RepairedText,
    /// The file holds something after the recording, or a header that makes no sense.
    DamagedHeader,
}

impl LossKind {
    /// Whether events are missing because of it.
    pub fn loses_events(self) -> bool {
        matches!(self, Self::Truncated | Self::DamagedRecord)
    }
}
