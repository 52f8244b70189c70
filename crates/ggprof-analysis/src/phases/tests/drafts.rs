//! Tokens that are drafted and checked.

use super::*;

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
