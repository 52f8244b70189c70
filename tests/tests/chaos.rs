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

/// Runs of the past that found something.
#[test]
fn seeds_that_found_something() {
    const SEEDS: [u64; 2] = [
        // Nobody said that the ggml in a library could not be hooked.
        17_947_868_332_046,
        // What was to end the program could not reach it.
        17_947_868_330_447,
    ];
    check(SEEDS.into_iter().map(Choice::of));
}

#[test]
fn a_random_seed() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that was set");
    let seed = now.as_secs();
    println!("repeat it with: cargo xtask chaos --seed {seed}");
    check(std::iter::once(Choice::of(seed)));
}
