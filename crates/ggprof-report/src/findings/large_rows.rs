//! Large parts of a phase in which nothing computes, and what they usually go to.

use super::{InWords, Told};
use crate::{spent_words, units};
use ggprof_analysis::Spent;
use ggprof_analysis::findings::LargeRow;

impl InWords for LargeRow {
    fn sentence(&self, told: &Told<'_>) -> String {
        match self.spent {
            Spent::Launching { backend } => {
                format!("{} waits for the host to launch work", told.label(backend))
            }
            Spent::Scheduling if self.has_device => {
                "ggml's scheduler prepares work while nothing computes".to_owned()
            }
            Spent::Scheduling => {
                "the host begins and ends graph runs while no op computes".to_owned()
            }
            Spent::BuildingGraphs => "libllama works outside of its graph runs".to_owned(),
            Spent::Program | Spent::BetweenRuns => {
                "the program itself works or waits between its graphs".to_owned()
            }
            spent => spent_words::words(told.trace, spent),
        }
    }

    fn evidence(&self, told: &Told<'_>) -> String {
        let ns = told.budget.sum(|spent| spent == self.spent);
        let share = units::share(told.budget.share(ns));
        let pieces = match self.has_device {
            true => format!("; splits a graph run: {}", units::times(self.splits_per_run)),
            false => String::new(),
        };
        let usual = match cause(self).0 {
            "" => String::new(),
            usual => format!("; usual with {usual}"),
        };
        format!("{share} of the time, in which nothing computes{pieces}{usual}")
    }

    fn advice(&self, _: &Told<'_>) -> String {
        format!("{}; `ggprof view` shows what happens then", cause(self).1)
    }
}

/// What such time usually goes to, and what helps then.
fn cause(row: &LargeRow) -> (&'static str, &'static str) {
    match row.spent {
        Spent::Launching { .. } => (
            "small kernels, graphs in many pieces and a slow or busy processor",
            "more tokens at once (-ub, -np), nothing else on the processor that launches",
        ),
        Spent::Scheduling if row.has_device => (
            "graphs in many pieces, and with inputs that are copied for each",
            "more tokens at once (-ub, -np), fewer ops on the CPU (-ngl, -ncmoe, -ot)",
        ),
        Spent::Scheduling => (
            "small graphs, whose threads are woken for each",
            "more tokens at once (-ub, -np), threads that stay awake (--poll 100), fewer threads (-t)",
        ),
        Spent::BuildingGraphs => (
            "small graphs, and with results of many tokens",
            "more tokens at once (-ub, -np), logits only where they are read, no \
             LLAMA_GRAPH_REUSE_DISABLE",
        ),
        Spent::Barriers | Spent::UnequalThreads => (
            "ops that are too small to share",
            "more tokens at once (-ub, -np), processors of one speed (--cpu-mask), nothing else on them",
        ),
        _ => ("", "`perf` tells what the program does there"),
    }
}
