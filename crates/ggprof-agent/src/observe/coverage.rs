//! Writes how something of the program is seen, or why it is not. What is said of the same thing
//! later replaces what was said before: some of it turns out only when a graph has run, or when a
//! device has worked.

use ggprof_spool::layout::{self, Covered, CoveredHow, Why};

use crate::recorder::definitions::Owner;
use crate::recorder::lane::HeldLane;

/// Whom it is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    /// A copy of ggml, and the text that names its library.
    Instance {
        id: u32,
        library: u32,
    },
    Backend(u32),
}

pub(crate) fn say(
    lane: &HeldLane<'_>,
    subject: Subject,
    what: Covered,
    (how, why): (CoveredHow, Why<'_>),
) {
    let mut record = layout::Coverage {
        how: how as u8,
        what: what as u16,
        why: why.code as u32,
        detail: lane.recorder.interner().lasting_text(lane, why.detail.as_bytes()),
        ..Default::default()
    };
    let owner = match subject {
        Subject::Instance { id, library } => {
            (record.instance, record.library) = (id, library);
            Owner::Instance(id)
        }
        Subject::Backend(id) => {
            record.backend = id;
            Owner::Backend(id)
        }
    };
    lane.define_lasting(owner, &record.encode());
}

/// How the kernels of a device are seen. Where they are, they show its ops as well, unless those are
/// seen one at a time anyway.
pub(crate) fn say_of_kernels(lane: &HeldLane<'_>, backend: u32, (how, why): (CoveredHow, Why<'_>)) {
    if how != CoveredHow::Not && !lane.recorder.serialize {
        say(lane, Subject::Backend(backend), Covered::Ops, (how, why));
    }
    say(lane, Subject::Backend(backend), Covered::Kernels, (how, why));
}
