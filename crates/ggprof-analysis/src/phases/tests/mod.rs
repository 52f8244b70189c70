//! Steps that libllama was asked for, written as text, and the phases that they make.

mod drafts;
mod positions;
mod requests;
mod shapes;
mod trials;
mod waits;

use super::*;
use crate::requests::{Cause, WaitShares};
use expect_test::{Expect, expect};
use ggprof_trace::text_fixture;
use std::fmt::Write;

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
