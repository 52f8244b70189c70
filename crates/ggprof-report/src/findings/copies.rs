//! Copies: those that nothing hides, slow ones, and weights that are copied again and again.

use super::{InWords, SHOWN, Told};
use crate::units;
use ggprof_analysis::copies::{HostEnd, TensorClass};
use ggprof_analysis::findings::{CopiedGroup, CopiedWeights, ExposedCopies, RateFrom, SlowCopies};
use ggprof_analysis::phases::PhaseKind;
use ggprof_trace::CopyDirection;

/// llama.cpp has had both names.
const NO_MMAP: &str = "-lm none (older builds: --no-mmap)";

/// A CPU of 1 TFLOP/s takes as long for so many tokens as copying a weight of one byte at 6 GB/s.
const MOST_TOKENS_FOR_CPU: u64 = 64;

impl InWords for ExposedCopies {
    fn sentence(&self, _: &Told<'_>) -> String {
        format!("nothing computes while data is copied {}", towards(self.direction))
    }

    fn evidence(&self, told: &Told<'_>) -> String {
        rows(&self.copies, told)
    }

    fn advice(&self, _: &Told<'_>) -> String {
        "keep on the device what is copied (-ngl, -ot; -nkvo off), or \
         compute more tokens at once (-ub)"
            .to_owned()
    }
}

impl InWords for SlowCopies {
    fn sentence(&self, _: &Told<'_>) -> String {
        format!(
            "copies to the device run at {}, where {} is possible",
            units::bandwidth(self.gb_per_s),
            units::bandwidth(self.best_gb_per_s)
        )
    }

    fn evidence(&self, told: &Told<'_>) -> String {
        let best = match self.best {
            RateFrom::Peaks => "measured on this machine, pinned memory",
            RateFrom::BestSeen => "the best of this recording",
        };
        format!("{}; the rate to reach: {best}", rows(&self.copies, told))
    }

    fn advice(&self, _: &Told<'_>) -> String {
        // Only weights are read from a mapped file.
        let is_weight =
            |row: &CopiedGroup| matches!(row.class, TensorClass::Weights | TensorClass::Experts);
        let no_mmap = match self.copies.iter().any(is_weight) {
            true => format!("{NO_MMAP}, and "),
            false => String::new(),
        };
        format!("pinned memory: {no_mmap}do not set GGML_CUDA_NO_PINNED")
    }
}

impl InWords for CopiedWeights {
    fn sentence(&self, told: &Told<'_>) -> String {
        let is_experts = self.copies.iter().all(|row| row.class == TensorClass::Experts);
        let what = if is_experts { "experts" } else { "weights" };
        let bytes = units::bytes(self.bytes_per_run as f64);
        match told.budget.runs {
            1 => format!("{bytes} of {what} are copied to the device for a graph run"),
            _ => format!("{bytes} of {what} are copied to the device again for every graph run"),
        }
    }

    fn evidence(&self, told: &Told<'_>) -> String {
        let rate = self.gb_per_s.map(|rate| format!(" at {}", units::bandwidth(rate)));
        format!("{}{}", rows(&self.copies, told), rate.unwrap_or_default())
    }

    fn advice(&self, told: &Told<'_>) -> String {
        let budget = told.budget;
        let is_experts = self.copies.iter().any(|row| row.class == TensorClass::Experts);
        let more = if is_experts { "a smaller -ncmoe" } else { "a larger -ngl" };
        let is_pageable = self.copies.iter().any(|row| row.memory == HostEnd::Pageable);
        let pinned = match is_pageable {
            true => format!("; {NO_MMAP} to copy from pinned memory"),
            false => String::new(),
        };
        // As often as there are graph runs; a prompt takes one at least.
        let is_divided = budget.runs > budget.phases.len() as u64;
        let less = match budget.kind == PhaseKind::Prompt && is_divided {
            true => "; -ub 2048 to copy less often",
            false => "",
        };
        // Of many tokens, the CPU's products take longer than copying the weights; few of them meet
        // at one expert.
        let is_small = budget.tokens / budget.runs.max(1) <= MOST_TOKENS_FOR_CPU;
        let nothing =
            if is_small || is_experts { "; or --no-op-offload to copy nothing" } else { "" };
        format!("{more}{less}{pinned}{nothing}")
    }
}

fn towards(direction: CopyDirection) -> &'static str {
    match direction {
        CopyDirection::HostToDevice => "to the device",
        CopyDirection::DeviceToHost => "from the device",
        CopyDirection::DeviceToDevice => "between devices",
        CopyDirection::HostToHost | CopyDirection::Unknown => "in the host's memory",
    }
}

fn rows(copies: &[CopiedGroup], told: &Told<'_>) -> String {
    let runs = told.budget.runs.max(1) as f64;
    let words = copies.iter().take(SHOWN).map(|row| {
        let more = match row.tensors {
            0 | 1 => String::new(),
            more => format!(" and {} more", more - 1),
        };
        let memory = match row.memory {
            HostEnd::Pinned => " of pinned memory",
            HostEnd::Pageable => " of pageable memory",
            HostEnd::Unknown => "",
        };
        format!(
            "{}{more}: {}{memory} a graph run, {} of it exposed",
            row.tensor,
            units::bytes(row.bytes as f64 / runs),
            units::duration(row.exposed_ns as f64 / runs)
        )
    });
    words.collect::<Vec<_>>().join(", ")
}
