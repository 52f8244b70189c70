//! Which steps are one request, by what libllama was given.

use super::*;

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
fn the_depth_is_named_where_it_matters() {
    let found = known(&["0:0+4096!1", "0:4096+1!1", "0:4097+1!1"]);
    assert_eq!(labels(&found), ["pp4096", "tg2 @ d4096"]);
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
