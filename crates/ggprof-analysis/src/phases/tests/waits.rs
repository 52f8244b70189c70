//! What a request waited for.

use super::*;

#[test]
fn a_wait_is_explained_by_what_was_computed_meanwhile() {
    let found = known(&["0:0+4!1", "0:4+1!1", "1:0+900", "1:900+100!1", "0:5+1!1 1:1000+1!1"]);
    let waits = &found.requests[0].waits;
    assert_eq!(waits[1].cause, Cause::OtherPrompt { request: 1 });
    assert_eq!((waits[1].duration_ns(), waits[1].cause_ns), (45, 20));
    let found = known(&["0:0+4!1", "0:4+1!1", "idle", "0:5+1!1"]);
    assert_eq!(found.requests[0].waits[1].cause, Cause::Nobody);
    let found = known(&["0:0+4!1", "0:4+1!1 1:0+99!1", "0:5+1!1 1:99+1!1"]);
    assert_eq!(found.requests[0].waits[0].cause, Cause::SharedWithPrompt { request: 1 });
    assert_eq!(labels(&found), ["pp4", "mixed100", "tg1x2"]);
}

/// The waits of request 0 in a trace with these lines, behind a prompt and a token at 0..20.
fn waits_with(lines: &[&str]) -> Vec<crate::Wait> {
    phases(&trace_with(lines)).requests[0].waits.clone()
}

fn trace_with(lines: &[&str]) -> ggprof_trace::Trace {
    let mut text = "backend 0 CPU cpu\n".to_owned();
    let first = ["batch 0..10 0:0+4!1", "batch 10..20 0:4+1!1"];
    let mut batches = 0;
    for line in first.iter().chain(lines) {
        writeln!(text, "{line}").unwrap();
        if let Some(rest) = line.strip_prefix("batch ") {
            let (times, _) = rest.split_once(' ').unwrap();
            writeln!(text, "run {times} batch={batches}").unwrap();
            batches += 1;
        }
    }
    text_fixture::parse(&text)
}

#[test]
fn what_another_process_computes_keeps_nobody_waiting() {
    let mut trace = trace_with(&["batch 25..60 0:0+900!1 context=2", "batch 70..80 0:5+1!1"]);
    trace.graph_runs[2].process = Some(ggprof_trace::ProcessIndex(1));
    let waits = &phases(&trace).requests[0].waits;
    assert_eq!((waits[1].cause, waits[1].cause_ns), (Cause::Nobody, 50));
}

#[test]
fn contexts_that_compute_at_the_same_time_share_a_wait() {
    // A prompt of another context begins before the wait, a later step of a third one lies behind that.
    let steps = ["batch 5..60 0:0+900!1 context=2", "batch 12..30 0:0+9!1 context=3"];
    let waits = waits_with(&[&steps[..], &["batch 70..80 0:5+1!1"]].concat());
    let shares = WaitShares { own_step: 10, other_prompt: 40, nobody: 10, ..Default::default() };
    assert_eq!((waits[1].cause_ns, waits[1].duration_ns(), waits[1].shares), (40, 60, shares));
    assert_eq!(waits[1].cause, Cause::OtherPrompt { request: 1 });
}

#[test]
fn what_is_no_token_is_another_graph() {
    let waits = waits_with(&["run 25..60 scheduler=7", "batch 70..80 0:5+1!1"]);
    assert_eq!((waits[1].cause, waits[1].cause_ns), (Cause::OtherGraph, 35));
}

#[test]
fn what_was_not_recorded_ends_a_phase_and_counts_for_none() {
    let mut trace = text_fixture::parse(&batches(&["0:0+4!1", "0:4+1!1", "0:5+1!1"]));
    for (run, number) in trace.graph_runs.iter_mut().zip([1, 2, 9]) {
        run.number = Some(number);
    }
    let found = phases(&trace);
    assert_eq!(labels(&found), ["pp4", "tg1", "tg1"]);
    assert_eq!(found.requests[0].waits[1].cause, Cause::OwnStep);
}
