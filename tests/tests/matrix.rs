//! The short form of `cargo xtask matrix`: programs and builds that no other test runs.

use ggprof_e2e::{matrix, tool};

#[test]
fn every_row_is_recorded_completely_and_computes_the_same() {
    for row in matrix::short() {
        let Some(finding) = tool::fetched(&row.name, row.find(1)) else { continue };
        assert!(finding.is_complete(), "{}: {finding:?}", row.name);
        assert_ne!(finding.same_result, Some(false), "{}: other results", row.name);
    }
}
