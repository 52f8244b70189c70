//! What programs compute in a new context before their work begins. A step that may be such a trial is
//! kept until something shows whether it was one.

use super::steps::LiveStep;
use crate::sequences::Turn;
use crate::warm_up::WARM_UP_TOKENS;
use hashbrown::HashMap;

/// By context.
#[derive(Debug, Default)]
pub(super) struct Trials(HashMap<u32, TrialState>);

#[derive(Debug)]
enum TrialState {
    /// Nothing but trials came so far.
    New,
    /// This step may be another one; it ended then.
    MaybeTried(LiveStep, u64),
    AtWork,
}

impl Trials {
    /// Whether a context was seen before.
    pub(super) fn know(&mut self, context: u32) -> bool {
        let is_known = self.0.contains_key(&context);
        self.0.entry(context).or_insert(TrialState::New);
        is_known
    }

    /// The memory is cleared behind a trial. What was none, and when it ended.
    pub(super) fn conclude(&mut self, context: u32, turn: &Turn) -> Option<(LiveStep, u64)> {
        let state = self.0.get_mut(&context)?;
        if turn.is_untried {
            *state = TrialState::AtWork;
        }
        if !matches!(state, TrialState::MaybeTried(..)) {
            return None;
        }
        // What follows a trial may be another one.
        let next = if turn.is_after_clear { TrialState::New } else { TrialState::AtWork };
        match std::mem::replace(state, next) {
            TrialState::MaybeTried(step, end_ns) if !turn.is_after_clear => Some((step, end_ns)),
            _ => None,
        }
    }

    /// A step has ended; it is given back unless it may be a trial.
    pub(super) fn end(&mut self, step: LiveStep, end_ns: u64) -> Option<LiveStep> {
        let state = self.0.entry(step.context).or_insert(TrialState::New);
        if matches!(state, TrialState::New) && step.tokens <= WARM_UP_TOKENS {
            *state = TrialState::MaybeTried(step, end_ns);
            return None;
        }
        *state = TrialState::AtWork;
        Some(step)
    }

    /// A context is freed. What nothing came behind.
    pub(super) fn forget(&mut self, context: u32) -> Option<(LiveStep, u64)> {
        match self.0.remove(&context)? {
            TrialState::MaybeTried(step, end_ns) => Some((step, end_ns)),
            TrialState::New | TrialState::AtWork => None,
        }
    }

    pub(super) fn steps(&self) -> impl Iterator<Item = &LiveStep> {
        self.0.values().filter_map(|context| match context {
            TrialState::MaybeTried(step, _) => Some(step),
            TrialState::New | TrialState::AtWork => None,
        })
    }
}
