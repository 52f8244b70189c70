//! Coverage as ggprof's JSON files name it.

use crate::model::{Coverage, Covered, CoveredHow, CoveredWhy};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CoverageEntry {
    subject: String,
    what: String,
    /// `None` for what was not observed.
    how: Option<String>,
    /// Files from before there were names for reasons have the detail only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(default, rename = "reason")]
    detail: String,
}

impl From<&Coverage> for CoverageEntry {
    fn from(coverage: &Coverage) -> Self {
        let Coverage { subject, what, how, why, detail } = coverage;
        Self {
            subject: subject.clone(),
            what: what_key(*what).to_owned(),
            how: coverage.is_observed().then(|| how_key(*how).to_owned()),
            why: (*why != CoveredWhy::Untold).then(|| why.name().to_owned()),
            detail: detail.clone(),
        }
    }
}

impl CoverageEntry {
    /// `None` where the file speaks of something that this version does not know.
    pub(super) fn coverage(self) -> Option<Coverage> {
        let known = |key| CoveredHow::ALL.iter().copied().find(|&how| how_key(how) == key);
        let why =
            CoveredWhy::ALL.iter().copied().find(|why| Some(why.name()) == self.why.as_deref());
        Some(Coverage {
            what: Covered::ALL.iter().copied().find(|&what| what_key(what) == self.what)?,
            how: self.how.as_deref().map_or(Some(CoveredHow::Not), known)?,
            why: why.unwrap_or(CoveredWhy::Untold),
            subject: self.subject,
            detail: self.detail,
        })
    }
}

/// What files call it. Readers of all versions know these names, so they do not change: words for people are
/// the report's.
fn what_key(what: Covered) -> &'static str {
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
fn how_key(how: CoveredHow) -> &'static str {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_can_be_said_is_read_back() {
        for &what in Covered::ALL {
            for &how in CoveredHow::ALL {
                for &why in CoveredWhy::ALL {
                    let (subject, detail) = ("CPU".to_owned(), "because".to_owned());
                    let coverage = Coverage { subject, what, how, why, detail };
                    let text = serde_json::to_string(&CoverageEntry::from(&coverage)).unwrap();
                    let entry: CoverageEntry = serde_json::from_str(&text).unwrap();
                    assert_eq!(entry.coverage(), Some(coverage));
                }
            }
        }
    }

    /// As they stand in files that were written before.
    #[test]
    fn names_in_files_stay() {
        let whats: Vec<&str> = Covered::ALL.iter().map(|&what| what_key(what)).collect();
        assert_eq!(
            whats.join("; "),
            "splits; ops; barrier waits; fusions; asynchronous copies; struct layouts; copies; kernels; \
             buffers; placement; experts"
        );
        let hows: Vec<&str> = CoveredHow::ALL.iter().map(|&how| how_key(how)).collect();
        assert_eq!(
            hows.join("; "),
            "not; function table; GOT slot; serialized; probed; abort callback, first thread only; \
             symbol name; timestamps of the device; activity records of the device; function entry; \
             node by node; asked"
        );
    }

    #[test]
    fn of_files_from_before_there_were_names_for_reasons_the_text_is_kept() {
        let text = r#"{"subject": "CPU", "what": "ops", "how": null, "reason": "it is stripped"}"#;
        let entry: CoverageEntry = serde_json::from_str(text).unwrap();
        let coverage = entry.coverage().unwrap();
        assert_eq!((coverage.what, coverage.how), (Covered::Ops, CoveredHow::Not));
        assert_eq!((coverage.why, &*coverage.detail), (CoveredWhy::Untold, "it is stripped"));
    }

    #[test]
    fn what_nobody_knows_is_not_guessed_at() {
        let text = r#"{"subject": "CPU", "what": "dreams", "how": "GOT slot", "reason": ""}"#;
        let entry: CoverageEntry = serde_json::from_str(text).unwrap();
        assert_eq!(entry.coverage(), None);
    }
}
