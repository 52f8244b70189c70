//! Steps that are over, and how fast the program was.

use super::WINDOW_NS;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct Done {
    /// Those of the last minute.
    steps: VecDeque<DoneStep>,
    /// Those that nobody asked for.
    told: Vec<DoneStep>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct DoneStep {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) prompt: u64,
    pub(super) generated: u64,
}

impl Done {
    pub(super) fn push(&mut self, step: DoneStep) {
        self.steps.push_back(step);
        self.told.push(step);
    }

    /// Steps that became known since this was asked last: each is counted once.
    pub(super) fn take_told(&mut self) -> Vec<DoneStep> {
        std::mem::take(&mut self.told)
    }

    pub(super) fn forget(&mut self, now_ns: u64) {
        self.steps.retain(|step| step.end_ns + WINDOW_NS >= now_ns);
    }

    pub(super) fn spans(&self) -> impl Iterator<Item = (u64, u64)> {
        self.steps.iter().map(|step| (step.start_ns, step.end_ns))
    }

    /// Tokens a second that were generated after a moment; `None` unless some were also in as long a
    /// time before it.
    pub(super) fn generation_since(&self, from_ns: u64, span_ns: u64) -> Option<f64> {
        let generating = || self.steps.iter().filter(|step| step.generated > 0);
        let began =
            generating().any(|step| step.end_ns <= from_ns && step.end_ns + span_ns > from_ns);
        let tokens: u64 =
            generating().filter(|step| step.end_ns > from_ns).map(|step| step.generated).sum();
        began.then(|| tokens as f64 * 1e9 / span_ns as f64)
    }
}

/// Tokens a second; where a step took longer than the interval, over that.
pub(super) fn speed(
    steps: &[DoneStep],
    tokens: impl Fn(&DoneStep) -> u64,
    now_ns: u64,
    interval_ns: u64,
) -> f64 {
    let counted = || steps.iter().filter(|step| tokens(step) > 0);
    let sum: u64 = counted().map(&tokens).sum();
    let since_ns = counted().map(|step| step.start_ns).min().unwrap_or(now_ns);
    let span_ns = interval_ns.max(now_ns.saturating_sub(since_ns));
    sum as f64 * 1e9 / span_ns as f64
}
