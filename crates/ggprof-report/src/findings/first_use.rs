//! Kernels that are compiled or loaded when they are first used.

use super::{InWords, Told, time};
use ggprof_analysis::findings::FirstUse;
use ggprof_analysis::phases::PhaseKind;
use ggprof_trace::StringId;

impl InWords for FirstUse {
    fn sentence(&self, _: &Told<'_>) -> String {
        "kernels are compiled or loaded when they are first used".to_owned()
    }

    fn evidence(&self, told: &Told<'_>) -> String {
        let named = |(name, ns): (StringId, u64)| (told.trace.text(name), time(ns));
        let compiled = self.longest.map(named).map(|(name, time)| match self.pipelines {
            1 => format!("the pipeline {name} was compiled ({time})"),
            pipelines => {
                format!("{pipelines} pipelines were compiled, {name} the longest ({time})")
            }
        });
        let slower = self.slowest.map(named).map(|(name, time)| {
            let first_uses = if self.kernels == 1 { "first use" } else { "first uses" };
            format!("{} {first_uses} took longer than later ones, {name} by {time}", self.kernels)
        });
        let waited = self.longest_wait.map(named).map(|(name, time)| match self.loaded {
            1 => format!("the device waited for {name}, a new kernel ({time})"),
            loaded => {
                format!("the device waited for {loaded} new kernels, longest for {name} ({time})")
            }
        });
        let seen: Vec<String> = [compiled, waited, slower].into_iter().flatten().collect();
        match seen.is_empty() {
            true => "the device waits before kernels that were not used before".to_owned(),
            false => seen.join("; "),
        }
    }

    fn advice(&self, told: &Told<'_>) -> String {
        let warm_up = match told.budget.kind {
            PhaseKind::Prompt | PhaseKind::Mixed => {
                "warm up with a prompt of the usual length (llama.cpp's own warm-up computes two tokens, \
                 with few of the kernels of prompts)"
            }
            _ => "warm up before the first request (no --no-warmup)",
        };
        format!(
            "{warm_up}, and keep the driver's cache; it happens once, so a program that runs for long \
             gains little"
        )
    }
}
