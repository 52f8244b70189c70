//! The short form of `cargo xtask matrix`: programs and builds that no other test runs.

use ggprof_e2e::{matrix, tool};

#[test]
fn every_row_is_recorded_completely_and_computes_the_same() {
    for row in matrix::short() {
        let Some(finding) = tool::fetched(&row.name, row.find(1)) else { continue };
        assert_eq!(row.complaint(&finding), None, "{}: {finding:?}", row.name);
    }
}
