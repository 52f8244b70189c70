//! The short form of `cargo xtask matrix --changed`.

use ggprof_e2e::{changed_ggml, tool};

#[test]
fn a_changed_ggml_does_the_same_and_is_recorded_or_it_is_said_why_not() {
    let mut complaints = Vec::new();
    for build in changed_ggml::selected() {
        let Some(finding) = tool::fetched(build.name, build.find()) else { continue };
        let complaint = build.complaint(&finding);
        complaints.extend(complaint.map(|words| format!("{}: {words}: {finding:?}", build.name)));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
