//! Trials and repetitions of benchmarks.

use super::*;

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
