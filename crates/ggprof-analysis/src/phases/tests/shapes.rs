//! Phases that are guessed from shapes, where no calls of libllama were seen.

use super::*;

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

#[test]
fn idle_time_is_of_no_phase_even_if_only_shapes_are_known() {
    let mut fixture = "backend 0 CPU cpu\n".to_owned();
    // The last two lie closer together than ten times their length.
    let starts = [0, 2_000, 15_000_000_000, 32_000_000_000_u64];
    for (run, (start, length)) in
        starts.into_iter().zip([1_000, 1_000, 2_000_000_000, 2_000_000_000]).enumerate()
    {
        let end = start + length;
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
    assert_eq!(labels(&phases(&text_fixture::parse(&fixture))), ["pp14", "pp7", "pp7"]);
}
