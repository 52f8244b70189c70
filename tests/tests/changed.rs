//! The short form of `cargo xtask matrix --changed`.

use ggprof_e2e::trial::Trial;
use ggprof_e2e::{changed_ggml, old_ggml, rust_programs, tool};

fn check(trials: Vec<Trial>) {
    let mut complaints = Vec::new();
    for trial in trials {
        let Some(finding) = tool::fetched(&trial.name, trial.find()) else { continue };
        let complaint = trial.complaint(&finding);
        complaints.extend(complaint.map(|words| format!("{}: {words}: {finding:?}", trial.name)));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_changed_ggml_does_the_same_and_is_recorded_or_it_is_said_why_not() {
    check(changed_ggml::selected());
}

#[test]
fn an_old_ggml_does_the_same_and_is_recorded_or_it_is_said_why_not() {
    check(old_ggml::quick());
}

/// Some take ten minutes to compile.
#[test]
fn rust_programs_with_ggml_inside_are_recorded() {
    if std::env::var_os("GGPROF_RUST_PROGRAMS").is_some() {
        check(rust_programs::all());
    } else {
        check(rust_programs::quick());
    }
}
