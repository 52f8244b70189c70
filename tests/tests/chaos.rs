//! A short run of `cargo xtask chaos`: every hazard once, with programs that do not take long, and
//! one run of a random seed.

use std::time::{SystemTime, UNIX_EPOCH};

use ggprof_e2e::chaos::{Campaign, Choice, Finding};

#[track_caller]
fn check(choices: impl Iterator<Item = Choice>) {
    let mut campaign = Campaign::new();
    for choice in choices {
        let finding = campaign.run(&choice);
        let place = campaign.place(&choice);
        if let Finding::Violated(how) = finding {
            panic!("{choice}\n{}\nsee {}", how.join("\n"), place.display());
        }
        println!("{choice}: {finding:?}");
    }
}

#[test]
fn every_hazard() {
    check(Choice::one_of_each().into_iter());
}

/// Runs of the past that found something: program and hazards. What a seed draws changes with the tables, and
/// another one then has to take its place.
#[test]
fn seeds_that_found_something() {
    const SEEDS: [(u64, [&str; 3]); 2] = [
        // Nobody said that the ggml in a library could not be hooked.
        (231_748, ["llama.cpp in a library", "by variable", "no new code"]),
        // What was to end the program could not reach it.
        (191_856, ["churns 3.22.1", "launcher killed", "terminated"]),
    ];
    check(SEEDS.into_iter().map(|(seed, stands_for)| {
        let choice = Choice::of(seed);
        assert!(
            stands_for.iter().all(|name| choice.has(name)),
            "no more of {stands_for:?}: {choice}"
        );
        choice
    }));
}

#[test]
fn a_random_seed() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that was set");
    let seed = now.as_secs();
    println!("repeat it with: cargo xtask chaos --seed {seed}");
    check(std::iter::once(Choice::of(seed)));
}
