//! Coverage of barrier waits that turns out to be wrong. A compiler may put the barrier between ops in
//! line, and leave calls of it inside of ops. Because of those calls, the agent has recorded that waits
//! are seen; the first graph shows that they are not.

use std::sync::atomic::Ordering;

use ggprof_spool::layout::{Covered, CoveredHow, CoveredWhy, Why};

use super::adopted::Adopted;
use super::coverage::{self, Subject};
use crate::recorder::lane::HeldLane;

/// Records that the waits of this backend are not seen, once.
pub(super) fn note(lane: &HeldLane<'_>, adopted: &Adopted) {
    if adopted.waits_unseen().swap(true, Ordering::Relaxed) {
        return;
    }
    let not_seen = (CoveredHow::Not, Why::plain(CoveredWhy::BarrierInlined));
    coverage::say(lane, Subject::Backend(adopted.id()), Covered::BarrierWaits, not_seen);
}

/// Whether it was recorded.
pub(super) fn is_noted(adopted: &Adopted) -> bool {
    adopted.waits_unseen().load(Ordering::Relaxed)
}
