//! The document and the code name the same records.

use ggprof_spool::layout::{self, FIRST_LONG_KIND};

const DOCUMENT: &str = include_str!("../FORMAT.md");

#[test]
fn every_record_is_in_the_document() {
    for (name, kind, bytes) in layout::RECORDS {
        let fixed = *kind < FIRST_LONG_KIND
            || ["CopyEvent", "DeviceMemory", "DeviceWork", "Transfer"].contains(name);
        let tail = if fixed { "" } else { " + tail" };
        let row = format!("| 0x{kind:02x} | {name} | {bytes}{tail} |");
        assert!(DOCUMENT.contains(&row), "FORMAT.md lacks the row `{row}`");
    }
    let rows = DOCUMENT.lines().filter(|line| line.starts_with("| 0x")).count();
    assert_eq!(rows, layout::RECORDS.len());
}

#[test]
fn every_reason_is_in_the_document() {
    for &why in layout::CoveredWhy::ALL {
        let row = format!("| {} | {} | ", why as u32, why.name());
        assert!(DOCUMENT.contains(&row), "FORMAT.md lacks the row `{row}`");
    }
}

#[test]
fn the_version_is_in_the_document() {
    let title = format!("# The recording file, version {}", layout::VERSION);
    assert!(DOCUMENT.starts_with(&title));
}
