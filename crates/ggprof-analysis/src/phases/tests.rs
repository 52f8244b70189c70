use super::*;
use crate::requests::{Cause, WaitShares};
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

/// The same of a benchmark.
fn benchmarked(steps: &[&str]) -> Phases {
    phases(&text_fixture::parse(&format!("program llama-bench\n{}", batches(steps))))
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

/// More sequences than a recording lists, as a batch's own numbers say.
#[test]
fn as_many_results_as_tokens_are_sequences_that_generate() {
    let steps = ["0:0+800!300", "0:800+300!300", "0:1100+300!300", "0:1400+1!1 1:4+1!1"];
    let mut trace = text_fixture::parse(&batches(&steps));
    trace.batches[..3].iter_mut().for_each(|batch| batch.sequences.clear());
    let found = phases(&trace);
    assert_eq!(labels(&found), ["pp800", "tg2x300", "tg1x2"]);
    assert_eq!(found.guessed_runs(), 3);
    // Whose they are was not seen, nor where they began.
    assert!(found.requests.iter().all(|it| it.began_before && it.first_token_ns.is_none()));
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

/// llama-server keeps prompts in memory and in files, and computes the last token of one that is there.
#[test]
fn what_was_loaded_is_reused() {
    let again = ["removed 0 446", "0:446+1!1", "0:447+1!1"];
    for before in [&["0:0+30!1", "0:30+1!1"][..], &[]] {
        let found = known(&[before, &again[..]].concat());
        let last = found.requests.last().unwrap();
        let figures = (last.prompt_tokens, last.reused_tokens, last.generated);
        assert_eq!((figures, last.first_token_ns), ((1, 446, 2), Some(10)));
        assert!(!last.began_before);
    }
}

#[test]
fn repetitions_are_told_apart_by_the_cleared_memory() {
    let steps = ["cleared", "0:0+8!1", "cleared", "0:0+8!1", "cleared", "0:0+8!1"];
    let found = benchmarked(&steps);
    assert_eq!(labels(&found), ["warm-up", "pp8", "pp8"]);
    let groups: Vec<_> =
        found.groups().iter().map(|it| (it.first_label.clone(), it.count)).collect();
    assert_eq!(groups, [("warm-up".to_owned(), 1), ("pp8".to_owned(), 2)]);
    let steps = ["0:0+1!1", "cleared", "0:0+1!1", "0:1+1!1", "cleared", "0:0+1!1", "0:1+1!1"];
    assert_eq!(labels(&benchmarked(&steps)), ["warm-up", "tg2", "tg2"]);
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
    // Nothing tells what became of the last ones, but the first of them is no guess.
    assert_eq!((found.requests.len(), found.requests[0].generated), (1, 1 + 2 + 4 + 1));
    assert_eq!(labels(&found), ["pp8", "tg7"]);
    // All were right.
    let steps = [&steps[..], &["removed 0 18"]].concat();
    assert_eq!(known(&steps).requests[0].generated, 1 + 2 + 4 + 4);
}

/// A program that drafts behind its prompt has its last token checked with the first drafts. All are
/// right, so that there is nothing to take away.
#[test]
fn a_first_check_whose_drafts_are_all_right_is_a_check() {
    let steps = ["0:0+31", "0:31+5!5", "removed 0 36", "0:36+5!5", "removed 0 41", "0:41+5!5"];
    let found = known(&[&steps[..], &["removed 0 46"]].concat());
    assert_eq!(found.requests.len(), 1);
    assert_eq!(labels(&found), ["pp36", "tg10"]);
}

/// Programs with several sequences of drafts keep one of them as the first, also where it is that already.
#[test]
fn a_sequence_that_is_copied_to_itself_goes_on() {
    let steps = ["0:0+8!1", "0:8+4!4", "removed 0 10", "copied 0 0", "0:10+4!4"];
    let found = known(&[&steps[..], &["removed 0 14", "copied 0 0"]].concat());
    assert_eq!(labels(&found), ["pp8", "tg6"]);
    assert_eq!(found.requests.len(), 1);
}

/// A smaller model in context 2 drafts four tokens, of which `kept` stay with the one before.
fn speculation(rounds: usize, kept: usize) -> Vec<String> {
    let mut steps = vec!["0:0+99!1".to_owned(), "0:0+99!1 context=2".to_owned()];
    for round in 0..rounds {
        let next = 99 + round * kept;
        steps.push(format!("removed 0 {next} context=2"));
        steps.extend((next..next + 4).map(|at| format!("0:{at}+1!1 context=2")));
        steps.push(format!("0:{next}+5!5"));
        steps.push(format!("removed 0 {}", next + kept));
    }
    steps
}

#[test]
fn drafts_of_a_smaller_model_are_no_requests_and_no_tokens() {
    let steps = speculation(10, 2);
    let found = known(&steps.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(labels(&found), ["pp99", "draft139", "tg20"]);
    let [request] = &found.requests[..] else { panic!("{:?}", found.requests) };
    assert_eq!((request.prompt_tokens, request.generated), (99, 21));
    // What is drafted is on the way to its own tokens.
    assert!(request.waits.iter().all(|wait| wait.cause == Cause::OwnStep));
    // The phase says the same as the request.
    let speed = found.phases[2].tokens_per_second().unwrap();
    assert!((speed / request.tokens_per_second().unwrap() - 1.0).abs() < 0.05);
    // Seen once, it may be chance.
    let steps = speculation(1, 2);
    let found = known(&steps.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(found.steps.iter().all(|step| !step.is_draft));
}

/// Where the drafts themselves were left out, a phase begins with what is left.
#[test]
fn a_phase_without_its_drafts_is_no_longer_than_the_wall_time() {
    let steps = speculation(10, 2);
    let mut trace =
        text_fixture::parse(&batches(&steps.iter().map(String::as_str).collect::<Vec<_>>()));
    let filter = crate::Filter { phase: Some(PhaseKind::Generation), ..Default::default() };
    assert!(filter.apply(&mut trace));
    let found = phases(&trace);
    let (start_ns, end_ns) = trace.span_ns().unwrap();
    let [phase] = &found.phases[..] else { panic!("{:?}", found.phases) };
    assert!(phase.wall_ns() <= end_ns - start_ns, "{phase:?} {start_ns}..{end_ns}");
}

/// llama-server has the smaller model read each batch before it looks at the results.
#[test]
fn tokens_are_there_when_the_smaller_model_has_read_the_batch() {
    let mut steps = Vec::new();
    for prompt in ["0:0+99", "0:108+99"] {
        steps.extend([format!("{prompt}!1"), format!("{prompt}!1 context=2")]);
        let behind = if prompt.starts_with("0:0") { 99 } else { 207 };
        for next in [behind, behind + 3, behind + 6] {
            steps.extend((next..next + 2).map(|at| format!("0:{at}+1!1 context=2")));
            steps.extend([format!("0:{next}+3!3"), format!("0:{next}+3!1 context=2")]);
            steps.extend(["", " context=2"].map(|of| format!("removed 0 {}{of}", next + 3)));
        }
    }
    let found = known(&steps.iter().map(String::as_str).collect::<Vec<_>>());
    let [first, second] = &found.requests[..] else { panic!("{:?}", found.requests) };
    for request in [first, second] {
        assert_eq!((request.generated, request.first_token_ns), (10, Some(25)), "{request:?}");
        let waits: Vec<_> = request.waits.iter().map(|it| (it.cause, it.duration_ns())).collect();
        // Two drafts, the check, and that it is read.
        assert_eq!(waits, [(Cause::OwnStep, 4 * 15); 3]);
    }
    let phases: Vec<_> = found.phases.iter().filter(|it| it.kind != PhaseKind::Draft).collect();
    let walls: Vec<_> = phases.iter().map(|it| (it.label(), it.wall_ns())).collect();
    let named = |name: &str, ns: u64| (name.to_owned(), ns);
    assert_eq!(walls, [named("pp99", 25), named("tg9", 175), named("pp99", 25), named("tg9", 175)]);
    // What was read last belongs to the request that it was read for.
    assert!(first.end_ns < second.start_ns);
    let drafts = found.steps.iter().filter(|step| step.is_draft && step.start_ns < first.end_ns);
    assert!(drafts.flat_map(|step| &step.parts).all(|part| part.request == 0));
}

/// Of a batch with several sequences, libllama gives the smaller model's program the last result only.
#[test]
fn the_smaller_model_reads_batches_of_several_sequences() {
    let mut steps = speculation(3, 2);
    let next = 99 + 3 * 2;
    steps.extend([format!("0:{next}+5!5 1:0+50!1"), format!("0:{next}+5 1:0+50!1 context=2")]);
    steps.push(format!("removed 0 {}", next + 2));
    let found = known(&steps.iter().map(String::as_str).collect::<Vec<_>>());
    let [_, second] = &found.requests[..] else { panic!("{:?}", found.requests) };
    assert_eq!((second.prompt_tokens, second.first_token_ns), (50, Some(25)));
}

/// A benchmark clears the memory once, tries, and clears it before each repetition.
#[test]
fn without_a_trial_the_first_repetition_counts() {
    let repetition = ["cleared", "0:0+64!1", "0:64+1!1", "0:65+1!1"];
    let steps = [&["cleared"], &repetition[..], &repetition[..]].concat();
    assert_eq!(labels(&benchmarked(&steps)), ["pp64", "tg2", "pp64", "tg2"]);
    // Two texts of the same length.
    let steps_of_embeddings = ["cleared", "0:0+8!8 encode", "cleared", "0:0+8!8 encode"];
    assert_eq!(labels(&benchmarked(&steps_of_embeddings)), ["enc8", "enc8"]);
    let tried = [&["cleared", "0:0+64!1", "0:64+1!1"], &steps[1..]].concat();
    assert_eq!(labels(&benchmarked(&tried)), ["warm-up", "pp64", "tg2", "pp64", "tg2"]);
}

/// With `--pooling none` the graph ends in logits, and each token has an output, as in a prompt.
#[test]
fn a_batch_whose_embeddings_are_read_is_no_prompt() {
    let texts = ["0:0+8!8", "read 1", "removed 0 0", "0:0+1!1", "read 2", "removed 0 0", "0:0+8!8"];
    let found = known(&texts);
    assert_eq!(labels(&found), ["enc8", "enc1", "pp8"]);
    assert!(found.first_token_ns.is_empty());
    // One that generates and looks at embeddings besides.
    let found = known(&["0:0+8!1", "0:8+1!1", "read 2", "0:9+1!1", "read 3"]);
    assert_eq!(labels(&found), ["pp8", "tg2"]);
    // Another context's call has the same number.
    let found = known(&["0:0+8!8", "read 1 context=2"]);
    assert_eq!(labels(&found), ["pp8"]);
}

#[test]
fn where_results_themselves_are_wanted_there_is_no_first_token() {
    let found = known(&["0:0+8!8", "removed 0 0", "0:0+6!6", "removed 0 0", "0:0+4!4", "0:4+1!1"]);
    let tokens: Vec<_> =
        found.requests.iter().map(|it| (it.generated, it.first_token_ns)).collect();
    assert_eq!(tokens, [(0, None), (0, None), (2, Some(10))]);
    assert_eq!(found.first_token_ns, [10]);
}

/// Whoever asks a program the same again and again is no benchmark.
#[test]
fn the_first_of_several_same_prompts_is_no_trial() {
    let steps = ["0:0+8!1", "0:8+1!1", "cleared", "0:0+8!1", "0:8+1!1"];
    let found = known(&steps);
    assert_eq!((labels(&found).join(" "), found.guessed_trials()), ("pp8 tg1 pp8 tg1".into(), 0));
    assert_eq!(benchmarked(&steps).guessed_trials(), 2);
    // A guess, too.
    let found = known(&["0:0+2!1", "cleared", "0:0+8!1"]);
    assert_eq!((labels(&found).join(" "), found.guessed_trials()), ("warm-up pp8".into(), 1));
    let found = known(&["warm-up", "0:0+2!1", "warmed-up", "cleared", "0:0+8!1"]);
    assert_eq!((labels(&found).join(" "), found.guessed_trials()), ("warm-up pp8".into(), 0));
}

/// A benchmark of several models, or settings, has a context for each.
#[test]
fn repetitions_are_those_of_one_context() {
    let found = benchmarked(&[
        "0:0+8!1",
        "cleared",
        "0:0+8!1",
        "cleared",
        "0:0+8!1",
        "0:0+8!1 context=2",
        "cleared context=2",
        "0:0+8!1 context=2",
    ]);
    let groups = |groups: Vec<PhaseGroup>| -> Vec<_> {
        groups.iter().map(|it| (it.first_label.clone(), it.sum.context(), it.count)).collect()
    };
    let named = |name: &str, context, count| (name.to_owned(), context, count);
    let expected = [named("warm-up", None, 2), named("pp8", Some(1), 2), named("pp8", Some(2), 1)];
    assert_eq!(groups(found.groups()), expected);
    assert_eq!(groups(found.label_groups())[1].2, 3);
}

/// The second half of a text is measured, without a trial before.
#[test]
fn whose_results_are_wanted_is_no_trial() {
    let text = ["cleared", "0:0+8!4"];
    let found = known(&[text, text, text].concat());
    assert_eq!(labels(&found), ["pp8"; 3]);
    assert!(found.first_token_ns.is_empty(), "{:?}", found.first_token_ns);
    let in_parts = ["cleared", "0:0+8", "0:8+8!8", "cleared", "0:0+8", "0:8+8!8"];
    let found = known(&in_parts);
    assert_eq!(labels(&found), ["pp16", "pp16"]);
    assert!(found.first_token_ns.is_empty(), "{:?}", found.first_token_ns);
}

#[test]
fn a_removal_that_takes_nothing_ends_no_request() {
    // llama-cpp-python asks for it before every batch, of all sequences.
    let steps = [
        "removed * 0",
        "0:0+8!1",
        "removed * 8",
        "0:8+1!1",
        "removed * 9",
        "0:9+1!1",
        "removed * 10",
        "0:10+1!1",
    ];
    let found = known(&steps);
    assert_eq!(labels(&found), ["pp8", "tg3"]);
    assert_eq!(found.requests.len(), 1);
    // Programs that check drafts ask for it where there were none.
    let steps = ["0:0+8!1", "0:8+1!1", "removed 0 9", "0:9+1!1", "removed 0 10", "0:10+1!1"];
    assert_eq!(labels(&known(&steps)), ["pp8", "tg3"]);
}

#[test]
fn chunks_that_each_have_a_result_are_one_prompt() {
    let round = ["cleared", "0:0+2048!1", "0:2048+2048!1"];
    let found = benchmarked(&[round, round, round].concat());
    assert_eq!(labels(&found), ["warm-up", "pp4096", "pp4096"]);
    assert_eq!(found.requests[1].first_token_ns, Some(25));
    let python = ["removed * 0", "0:0+512!1", "removed * 512", "0:512+188!1", "0:700+1!1"];
    let found = known(&python);
    assert_eq!(labels(&found), ["pp700", "tg1 @ d700"]);
    assert_eq!((found.requests.len(), found.requests[0].chunks), (1, 2));
    // A benchmark that fills the memory first has tried the rest alone.
    let steps = ["cleared", "0:0+64!1", "cleared", "0:0+600!1", "0:600+64!1"];
    let found = benchmarked(&[&steps[..], &steps[2..]].concat());
    assert_eq!(labels(&found), ["warm-up", "pp600", "pp64 @ d600", "pp600", "pp64 @ d600"]);
    let numbers: Vec<_> = found.requests.iter().map(|it| it.number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    // Or it keeps what fills the memory, and puts it back.
    let steps = ["cleared", "cleared", "0:0+600!1", "0:600+64!1", "cleared", "0:600+64!1"];
    assert_eq!(labels(&known(&steps)), ["pp600", "pp64 @ d600", "pp64 @ d600"]);
    // Parts do not grow.
    assert_eq!(labels(&known(&["0:0+64!1", "0:64+200!1"])), ["pp64", "pp200"]);
    // A server that was asked for one token has answered: what follows is another's prompt.
    let server = ["0:0+8!1", "removed 0 8", "0:8+6!1"];
    assert_eq!(known(&server).requests.len(), 2);
}

#[test]
fn a_prompt_in_chunks_with_all_results_is_a_prompt() {
    let found =
        known(&["0:0+512!512", "0:512+512!512", "0:1024+40!40", "0:1064+1!1", "0:1065+1!1"]);
    assert_eq!(labels(&found), ["pp1064", "tg2 @ d1064"]);
    // Nobody drafts that much.
    let found = known(&["0:0+8!1", "0:8+1!1", "0:9+300!300", "0:309+1!1"]);
    assert_eq!(labels(&found), ["pp8", "tg1", "pp300", "tg1"]);
    assert_eq!(found.requests.len(), 2);
}

#[test]
fn a_trial_of_one_context_is_not_one_of_another() {
    let steps = [
        "warm-up",
        "0:0+2!1",
        "warmed-up",
        "cleared",
        "0:0+8!1",
        "warm-up context=?",
        "0:0+2!1 context=2",
        "cleared context=2",
        "warmed-up context=2",
        "0:8+1!1",
        "0:9+1!1",
    ];
    let found = known(&steps);
    // Nobody said which context's the second trial was, but it was cleared and not used again.
    assert_eq!(labels(&found), ["warm-up", "pp8", "warm-up", "tg2"]);
}

#[test]
fn a_context_that_was_only_tried_may_be_freed() {
    let found = known(&["0:0+2!1", "cleared", "freed", "0:0+9!1 context=2"]);
    assert_eq!(labels(&found), ["warm-up", "pp9"]);
    assert_eq!(found.first_token_ns, [10]);
}

#[test]
fn what_began_before_the_recording_has_no_first_token() {
    let found = known(&["0:1000+1!1 1:700+1!1", "0:1001+1!1 1:701+1!1", "removed 0 4", "0:4+6!1"]);
    let requests: Vec<_> = found
        .requests
        .iter()
        .map(|it| (it.began_before, it.prompt_tokens, it.generated, it.first_token_ns))
        .collect();
    assert_eq!(requests, [(true, 0, 2, None), (true, 0, 2, None), (false, 6, 1, Some(10))]);
    assert_eq!((found.first_token_ns, found.between_tokens_ns.len()), (vec![10], 2));
}

#[test]
fn a_chunk_after_a_gap_may_not_be_the_first() {
    let mut trace = text_fixture::parse(&batches(&["0:512+512", "0:1024+8!1", "1:0+6!1"]));
    for (run, number) in trace.graph_runs.iter_mut().zip(7..) {
        run.number = Some(number);
    }
    let began_before = |trace: &Trace| -> Vec<bool> {
        phases(trace).requests.iter().map(|it| it.began_before).collect()
    };
    assert_eq!(began_before(&trace), [true, false]);
    trace.graph_runs.iter_mut().zip(1..).for_each(|(run, number)| run.number = Some(number));
    assert_eq!(began_before(&trace), [false, false]);
}

/// node-llama-cpp computes the tokens of two sequences in turns, where they do not come at the same time.
#[test]
fn sequences_that_take_turns_generate_together() {
    let turns = ["0:4+1!1", "1:6+1!1", "0:5+1!1", "1:7+1!1", "0:6+1!1"];
    let found = known(&[&["0:0+4!1", "1:0+6!1"], &turns[..]].concat());
    assert_eq!(labels(&found), ["pp4", "pp6", "tg5"]);
    assert_eq!(found.phases[2].wall_ns(), 5 * 10 + 4 * 5);
}

#[test]
fn a_pause_in_a_request_is_no_part_of_its_phases() {
    let found = known(&["0:0+8!1", "0:8+1!1", "0:9+1!1", "idle", "0:10+1!1", "0:11+1!1"]);
    assert_eq!(labels(&found), ["pp8", "tg2", "tg2"]);
    // The program's own figures of the request count it.
    assert_eq!(found.requests.len(), 1);
    assert!(found.requests[0].waits[2].duration_ns() > 1_000_000_000);
}

#[test]
fn a_shifted_context_goes_on_with_the_same_request() {
    let steps = ["0:0+8!1", "0:8+1!1", "removed 0 2 6", "shifted 0 -4", "0:5+1!1"];
    assert_eq!(known(&steps).requests.len(), 1);
}

/// As programs do that attend to groups of tokens: what is behind the group moves, and positions in the
/// group are divided, for which the whole is moved there and back.
#[test]
fn a_context_whose_positions_are_divided_goes_on_with_the_same_request() {
    let changes = ["shifted 0 4 4 12", "divided 0 2 8 16", "shifted 0 -8 16 16"];
    let steps = [&["0:0+12!1"], &changes[..], &["0:8+1!1", "divided 0 5 0 4", "0:9+1!1"]].concat();
    let found = known(&steps);
    assert_eq!(labels(&found), ["pp12", "tg2"]);
    assert_eq!(found.requests.len(), 1);
    assert_eq!(known(&["0:0+12!1", "divided 0 2", "0:6+1!1"]).requests.len(), 1);
}

/// All tokens of an image are at one position, and what follows goes on behind its longer side. A large image
/// comes in several batches.
#[test]
fn a_prompt_with_images_is_one_request() {
    let steps = ["0:0+9", "0:9=64", "0:9=36", "0:25+7", "0:32=64", "0:48+3!1", "0:51+1!1"];
    let found = known(&steps);
    assert_eq!(labels(&found), ["pp183", "tg1"]);
    let [request] = &found.requests[..] else { panic!("{:?}", found.requests) };
    assert_eq!((request.prompt_tokens, request.reused_tokens), (183, 0));
    assert_eq!((request.chunks, request.first_token_ns), (6, Some(85)));
    // What comes behind a result, or behind a removal, is another one.
    assert_eq!(known(&["0:0+9!1", "0:20+7!1"]).requests.len(), 2);
    assert_eq!(known(&["0:0+9", "removed 0 4", "0:20+7!1"]).requests.len(), 2);
    // A prompt that is computed once more is another one, too.
    assert_eq!(known(&["0:5+9", "0:5+9!1"]).requests.len(), 2);
}

#[test]
fn all_sequences_but_the_kept_one_end() {
    let found = known(&["0:0+4!1 1:0+4!1", "0:4+1!1 1:4+1!1", "kept 1", "0:5+1!1 1:5+1!1"]);
    let ends: Vec<_> = found.requests.iter().map(|it| (it.generated, it.began_before)).collect();
    assert_eq!(ends, [(2, false), (3, false), (1, true)]);
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

/// A batch of a damaged file whose graph run was long before it.
#[test]
fn a_batch_that_was_done_before_it_began() {
    let trace = text_fixture::parse(
        "backend 0 CPU cpu
         batch 900..950 0:0+1!1
         batch 960..970 0:1+1!1
         run 0..20 batch=0
         run 30..40 batch=1
         op CPU ADD 0..20 a run=0
         op CPU ADD 30..40 a run=1",
    );
    let mut trace = trace;
    trace.batches.iter_mut().for_each(|batch| batch.end_ns = Some(5));
    assert!(phases(&trace).phases.iter().all(|phase| phase.start_ns <= phase.end_ns));
}
