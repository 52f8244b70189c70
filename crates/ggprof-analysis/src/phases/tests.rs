use super::*;
use crate::requests::Cause;
use expect_test::{Expect, expect};
use ggprof_trace::text_fixture;
use std::fmt::Write;

/// One graph run per `(tokens, outputs)`, each 10 ns long with 1 ns before the next.
fn check(runs: &[(u64, u64)], expected: Expect) {
    let mut fixture = "backend 0 CPU cpu\n".to_owned();
    for (at, (tokens, outputs)) in runs.iter().enumerate() {
        let start = at * 11;
        let (middle, end) = (start + 5, start + 10);
        writeln!(fixture, "run {start}..{end}").unwrap();
        writeln!(
            fixture,
            "op CPU GET_ROWS {start}..{start} embd run={at} f32[8,{tokens}] <- f32[8,99] i32[{tokens}]"
        )
        .unwrap();
        for name in ["Qcur-0", "Kcur-0"] {
            writeln!(
                fixture,
                "op CPU MUL_MAT {start}..{middle} {name} run={at} f32[8,{tokens}] <- f32[8,8] f32[8,{tokens}]"
            )
            .unwrap();
        }
        writeln!(
            fixture,
            "op CPU MUL_MAT {middle}..{end} result_output run={at} f32[99,{outputs}] <- f32[8,99] f32[8,{outputs}]"
        )
        .unwrap();
    }
    let found = phases(&text_fixture::parse(&fixture));
    let mut text = String::new();
    for phase in &found.phases {
        let Phase { runs, start_ns, end_ns, .. } = phase;
        writeln!(text, "{} in {runs} runs, {start_ns}..{end_ns}", phase.label()).unwrap();
    }
    write!(text, "first {:?} between {:?}", found.first_token_ns, found.between_tokens_ns).unwrap();
    expected.assert_eq(&text);
}

#[test]
fn where_products_are_out_of_sight_lookups_tell() {
    let mut fixture = "backend 0 GPU gpu\nbackend 1 CPU cpu\n".to_owned();
    for (run, tokens) in [7, 1, 1].into_iter().enumerate() {
        let start = run * 100;
        let [looked_up, started, waited] = [start + 4, start + 6, start + 90];
        write!(
            fixture,
            "run {start}..{started}
             op CPU GET_ROWS {start}..{looked_up} embd run={run} f32[8,{tokens}] <- q4_0[8,99] i32[{tokens}]
             op GPU SPLIT {looked_up}..{started} measured=host_call run={run} f32[99,1] <- f32[8,{tokens}]
             wait {started}..{waited} run={run}
            "
        )
        .unwrap();
    }
    let found = phases(&text_fixture::parse(&fixture));
    let phases: Vec<_> = found.phases.iter().map(|it| (it.label(), it.wall_ns())).collect();
    assert_eq!(phases, [("pp7".to_owned(), 90), ("tg2".to_owned(), 190)]);
    assert_eq!(found.between_tokens_ns, [100, 100]);
}

#[test]
fn lookups_alone_are_no_prompt() {
    let fixture = "backend 0 CPU cpu\nrun 0..9
                   op CPU GET_ROWS 0..4 embd run=0 f32[8,7] <- q4_0[8,99] i32[7]";
    let found = phases(&text_fixture::parse(fixture));
    assert_eq!(found.phases[0].kind, PhaseKind::Graph);
}

#[test]
fn a_prompt_in_two_batches_and_three_tokens() {
    check(
        &[(512, 1), (88, 1), (1, 1), (1, 1), (1, 1)],
        expect![[r#"
            pp600 in 2 runs, 0..21
            tg3 in 3 runs, 22..54
            first [21] between [11, 11, 11]"#]],
    );
}

#[test]
fn the_trial_run_is_not_a_prompt() {
    check(
        &[(2, 1), (7, 1), (1, 1)],
        expect![[r#"
            warm-up in 1 runs, 0..10
            pp7 in 1 runs, 11..21
            tg1 in 1 runs, 22..32
            first [10] between [11]"#]],
    );
    // A prompt of two tokens that is answered at once was meant.
    check(
        &[(2, 1), (1, 1)],
        expect![[r#"
            pp2 in 1 runs, 0..10
            tg1 in 1 runs, 11..21
            first [10] between [11]"#]],
    );
}

#[test]
fn an_output_for_every_token_is_several_sequences() {
    check(
        &[(4, 4), (4, 4), (4, 1), (512, 512)],
        expect![[r#"
            pp4 in 1 runs, 0..10
            tg1x4 in 1 runs, 11..21
            pp516 in 2 runs, 22..43
            first [10] between [11]"#]],
    );
}

#[test]
fn graphs_without_products_are_unknown() {
    let trace = text_fixture::parse("backend 0 CPU cpu\nop CPU ADD 0..4 x");
    let found = phases(&trace);
    assert_eq!(found.phases[0].kind, PhaseKind::Graph);
    assert_eq!(found.kind_of_run(Some(GraphRunId(0))), PhaseKind::Graph);
    assert_eq!(found.phases[0].tokens_per_second(), None);
    assert_eq!(found.tokens_of_run, [None]);
}

#[test]
fn schedulers_in_turns_interrupt_each_other() {
    let run = |at: u64| format!("run {}..{}", at * 10, at * 10 + 9);
    let op = |at: u64| {
        let (start, end) = (at * 10, at * 10 + 1);
        format!("op CPU MUL_MAT {start}..{end} a run={at} f32[8,1] <- f32[8,8] f32[8,1]")
    };
    let lines: Vec<String> = (0..6).map(run).chain((0..6).map(op)).collect();
    let mut trace = text_fixture::parse(&format!("backend 0 CPU cpu\n{}", lines.join("\n")));
    for (at, scheduler) in [1, 1, 2, 2, 1, 1].into_iter().enumerate() {
        trace.graph_runs[at].scheduler = scheduler;
    }
    let found = phases(&trace);
    let spans: Vec<_> = found.phases.iter().map(|phase| (phase.start_ns, phase.end_ns)).collect();
    assert_eq!(spans, [(0, 19), (20, 39), (40, 59)]);
}

#[test]
fn schedulers_have_phases_of_their_own() {
    let mut trace = text_fixture::parse(
        "backend 0 CPU cpu
         run 0..10
         run 5..15
         op CPU GET_ROWS 0..0 e run=0 f32[8,7] <- f32[8,9] i32[7]
         op CPU GET_ROWS 5..5 e run=1 f32[8,1] <- f32[8,9] i32[1]
         op CPU MUL_MAT 0..1 a run=0 f32[8,7] <- f32[8,8] f32[8,7]
         op CPU MUL_MAT 1..2 b run=0 f32[8,7] <- f32[8,8] f32[8,7]
         op CPU MUL_MAT 2..3 c run=0 f32[8,1] <- f32[8,8] f32[8,1]
         op CPU MUL_MAT 5..6 a run=1 f32[8,1] <- f32[8,8] f32[8,1]",
    );
    trace.graph_runs[0].scheduler = 1;
    let found = phases(&trace);
    let labels: Vec<_> = found.phases.iter().map(Phase::label).collect();
    assert_eq!(labels, ["pp7", "tg1"]);
    assert_eq!(found.phase_of_run, [0, 1]);
    assert_eq!(found.tokens_of_run, [Some(7), Some(1)]);
}

/// A batch of this many steps: `what` is its sequences, or a change of the context.
fn known(steps: &[&str]) -> Phases {
    phases(&text_fixture::parse(&batches(steps)))
}

/// Each step takes 10 ns; 5 ns pass before the next one, and 1 s where a step is `idle`.
fn batches(steps: &[&str]) -> String {
    let (mut text, mut now, mut count) = ("backend 0 CPU cpu\n".to_owned(), 0_u64, 0);
    for what in steps {
        match what.split(' ').next().unwrap_or_default() {
            "idle" => now += 1_000_000_000,
            first if first.contains(':') => {
                let end = now + 10;
                writeln!(text, "batch {now}..{end} {what}").unwrap();
                writeln!(text, "run {}..{} batch={count}", now + 1, end - 1).unwrap();
                writeln!(text, "op CPU ADD {}..{} x run={count}", now + 2, end - 2).unwrap();
                count += 1;
                now = end + 5;
            }
            _ => writeln!(text, "change {now} {what}").unwrap(),
        }
    }
    text
}

fn labels(phases: &Phases) -> Vec<String> {
    phases.phases.iter().map(Phase::label).collect()
}

#[test]
fn a_prompt_in_chunks_is_one_phase_and_the_next_request_another() {
    let found =
        known(&["0:0+8", "0:8+4!1", "0:12+1!1", "0:13+1!1", "idle", "removed 0 0", "0:0+6!1"]);
    assert_eq!(labels(&found), ["pp12", "tg2", "pp6"]);
    let requests: Vec<_> = found
        .requests
        .iter()
        .map(|it| (it.prompt_tokens, it.reused_tokens, it.chunks, it.generated, it.first_token_ns))
        .collect();
    assert_eq!(requests, [(12, 0, 2, 3, Some(25)), (6, 0, 1, 1, Some(10))]);
    assert_eq!(found.first_token_ns, [10, 25]);
    assert_eq!(found.between_tokens_ns, [15, 15]);
}

#[test]
fn a_prompt_with_an_output_for_every_token_is_a_prompt() {
    let found = known(&["0:0+41!41", "0:41+1!1", "0:42+1!1"]);
    assert_eq!(labels(&found), ["pp41", "tg2"]);
}

#[test]
fn what_was_there_already_is_told_from_what_was_computed() {
    let found = known(&["0:0+8!1", "0:8+1!1", "removed 0 6", "0:6+9!1", "0:15+1!1"]);
    let reused: Vec<_> =
        found.requests.iter().map(|it| (it.reused_tokens, it.prompt_tokens)).collect();
    assert_eq!(reused, [(0, 8), (6, 9)]);
    // All but the last token was there, which has to be computed again.
    let found = known(&["0:0+8!1", "0:8+1!1", "removed 0 7", "0:7+1!1", "0:8+1!1"]);
    assert_eq!(found.requests.len(), 2);
}

#[test]
fn repetitions_are_told_apart_by_the_cleared_memory() {
    let steps = ["cleared", "0:0+8!1", "cleared", "0:0+8!1", "cleared", "0:0+8!1"];
    let found = known(&steps);
    assert_eq!(labels(&found), ["warm-up", "pp8", "pp8"]);
    let groups: Vec<_> =
        found.groups().iter().map(|it| (it.first_label.clone(), it.count)).collect();
    assert_eq!(groups, [("warm-up".to_owned(), 1), ("pp8".to_owned(), 2)]);
    let steps = ["0:0+1!1", "cleared", "0:0+1!1", "0:1+1!1", "cleared", "0:0+1!1", "0:1+1!1"];
    assert_eq!(labels(&known(&steps)), ["warm-up", "tg2", "tg2"]);
}

#[test]
fn a_warm_up_that_libllama_was_told_of() {
    let found = known(&["warm-up", "0:0+2!1", "warmed-up", "cleared", "0:0+8!1", "0:8+1!1"]);
    assert_eq!(labels(&found), ["warm-up", "pp8", "tg1"]);
    assert_eq!(found.first_token_ns, [10]);
}

#[test]
fn the_depth_is_named_where_it_matters() {
    let found = known(&["0:0+4096!1", "0:4096+1!1", "0:4097+1!1"]);
    assert_eq!(labels(&found), ["pp4096", "tg2 @ d4096"]);
}

#[test]
fn checked_guesses_go_on_with_the_same_request() {
    let steps = ["0:0+8!1", "0:8+4!4", "removed 0 10", "0:10+4!4", "removed 0 14", "0:14+4!4"];
    let found = known(&steps);
    assert_eq!((found.requests.len(), found.requests[0].generated), (1, 1 + 1 + 2 + 4));
}

#[test]
fn a_shifted_context_goes_on_with_the_same_request() {
    let steps = ["0:0+8!1", "0:8+1!1", "removed 0 2 6", "shifted 0 -4", "0:5+1!1"];
    assert_eq!(known(&steps).requests.len(), 1);
}

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

#[test]
fn idle_time_is_of_no_phase_even_if_only_shapes_are_known() {
    let mut fixture = "backend 0 CPU cpu\n".to_owned();
    for (run, start) in [0_u64, 2_000, 15_000_000_000].into_iter().enumerate() {
        let end = start + 1000;
        write!(
            fixture,
            "run {start}..{end}
             op CPU GET_ROWS {start}..{start} e run={run} f32[8,7] <- f32[8,9] i32[7]
             op CPU MUL_MAT {start}..{start} a run={run} f32[8,7] <- f32[8,8] f32[8,7]
             op CPU MUL_MAT {start}..{start} b run={run} f32[8,7] <- f32[8,8] f32[8,7]
             op CPU MUL_MAT {start}..{end} c run={run} f32[8,1] <- f32[8,8] f32[8,1]
            "
        )
        .unwrap();
    }
    assert_eq!(labels(&phases(&text_fixture::parse(&fixture))), ["pp14", "pp7"]);
}
