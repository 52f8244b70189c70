//! Batches that are told by the positions of their tokens.

use super::*;

/// Graph runs whose tokens stand at these positions, one after the other, and the phases that they make.
fn by_positions(batches: &[&str]) -> Vec<String> {
    let mut fixture = "backend 0 CPU cpu\n".to_owned();
    for (at, batch) in batches.iter().enumerate() {
        let (start, end) = (at * 10, at * 10 + 8);
        writeln!(fixture, "batch {start}..{end} {batch} positions").unwrap();
        writeln!(fixture, "run {start}..{end} batch={at}").unwrap();
        let lookup = "embd f32[8,4] <- f32[8,99] i32[4]";
        writeln!(fixture, "op CPU GET_ROWS {start}..{start} {lookup} run={at}").unwrap();
        let product = "Qcur-0 f32[8,4] <- f32[8,8] f32[8,4]";
        writeln!(fixture, "op CPU MUL_MAT {start}..{end} {product} run={at}").unwrap();
    }
    let found = phases(&text_fixture::parse(&fixture));
    assert!(found.phases.iter().all(|phase| !phase.is_guess));
    let requests = found.requests.len();
    let phases = found.phases.iter().map(Phase::label);
    phases.chain([format!("{requests} requests")]).collect()
}

#[test]
fn positions_tell_prompts_from_generation() {
    // A trial, a prompt in two pieces, three tokens, and a second prompt.
    let found = by_positions(&["0:0+2", "0:0+32", "0:32+9", "0:41+1", "0:42+1", "0:43+1", "0:0+5"]);
    assert_eq!(found, ["warm-up", "pp41", "tg3", "pp5", "3 requests"]);
}

#[test]
fn sequences_side_by_side_are_told_apart_by_their_positions() {
    let found = by_positions(&["0:0+4", "0:0+7", "0:4+1 1:7+1", "0:5+1 1:8+1"]);
    assert_eq!(found, ["pp4", "pp7", "tg2x2", "2 requests"]);
}

#[test]
fn positions_without_tokens_are_those_of_something_else() {
    let trace = text_fixture::parse(
        "backend 0 CPU cpu
         batch 0..8 0:0+4 positions
         run 0..8 batch=0
         op CPU MUL_MAT 0..8 Qcur-0 f32[8,4] <- f32[8,8] f32[8,4] run=0",
    );
    let found = phases(&trace);
    assert_eq!(found.phases[0].kind, PhaseKind::Graph);
    assert_eq!(found.runs_by_positions(&trace), 0);
}
