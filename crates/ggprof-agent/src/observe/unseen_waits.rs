//! A library whose compiler put the barrier between ops in line: what the agent had recorded about the
//! waits of its threads, because some calls of the barrier are left inside of ops, turns out to be
//! wrong when the first graph has run.

use std::sync::atomic::Ordering;

use ggprof_spool::layout::{self, Covered, CoveredHow, CoveredWhy};

use super::backends::Adopted;
use super::instance::Instance;
use crate::recorder::definitions::Owner;
use crate::recorder::lane::HeldLane;

/// Records it, once.
pub(super) fn note(lane: &HeldLane<'_>, adopted: &Adopted, instance: &Instance) {
    if adopted.waits_unseen().swap(true, Ordering::Relaxed) {
        return;
    }
    let record = layout::Coverage {
        how: CoveredHow::Not as u8,
        what: Covered::BarrierWaits as u16,
        backend: adopted.id(),
        instance: instance.id,
        why: CoveredWhy::BarrierInlined as u32,
        ..Default::default()
    };
    lane.define_lasting(Owner::Backend(adopted.id()), &record.encode());
}

/// Whether it was recorded.
pub(super) fn is_noted(adopted: &Adopted) -> bool {
    adopted.waits_unseen().load(Ordering::Relaxed)
}
