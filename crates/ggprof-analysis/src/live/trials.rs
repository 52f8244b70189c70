//! What programs compute in a new context before their work begins. A step that may be such a trial is
//! kept until something shows whether it was one.

use super::steps::LiveStep;
use crate::sequences::Turn;
use crate::warm_up::WARM_UP_TOKENS;
use hashbrown::HashMap;

/// By context.
#[derive(Debug, Default)]
pub(super) struct Trials(HashMap<u32, Context>);

#[derive(Debug)]
enum Context {
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
        self.0.entry(context).or_insert(Context::New);
        is_known
    }

    /// The memory is cleared behind a trial. What was none, and when it ended.
    pub(super) fn conclude(&mut self, context: u32, turn: &Turn) -> Option<(LiveStep, u64)> {
        let state = self.0.get_mut(&context)?;
        if turn.is_untried {
            *state = Context::AtWork;
        }
        if !matches!(state, Context::MaybeTried(..)) {
            return None;
        }
        // What follows a trial may be another one.
        let next = if turn.is_after_clear { Context::New } else { Context::AtWork };
        match std::mem::replace(state, next) {
            Context::MaybeTried(step, end_ns) if !turn.is_after_clear => Some((step, end_ns)),
            _ => None,
        }
    }

    /// A step has ended; it is given back unless it may be a trial.
    pub(super) fn end(&mut self, step: LiveStep, end_ns: u64) -> Option<LiveStep> {
        let state = self.0.entry(step.context).or_insert(Context::New);
        if matches!(state, Context::New) && step.tokens <= WARM_UP_TOKENS {
            *state = Context::MaybeTried(step, end_ns);
            return None;
        }
        *state = Context::AtWork;
        Some(step)
    }

    /// A context is freed. What nothing came behind.
    pub(super) fn forget(&mut self, context: u32) -> Option<(LiveStep, u64)> {
        match self.0.remove(&context)? {
            Context::MaybeTried(step, end_ns) => Some((step, end_ns)),
            Context::New | Context::AtWork => None,
        }
    }

    pub(super) fn steps(&self) -> impl Iterator<Item = &LiveStep> {
        self.0.values().filter_map(|context| match context {
            Context::MaybeTried(step, _) => Some(step),
            Context::New | Context::AtWork => None,
        })
    }
}
