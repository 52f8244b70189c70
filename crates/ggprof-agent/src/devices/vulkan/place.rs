//! What a command is recorded for: a node of the split that this thread computes, or something else
//! that has a name.

use std::sync::Arc;

use ggprof_spool::layout::{
    self, COPY_DEVICE_TO_DEVICE, NO_NODE, NONE, WORK_COPY, WORK_DIRECTION_BIT, WORK_FILL,
    WORK_KERNEL,
};

use super::pipelines::Pipeline;
use super::recording::{CommandWork, Name};
use crate::observe::copies;
use crate::observe::this_thread::ThisThread;

/// Where a piece of work belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkPlace {
    pub(crate) split: u32,
    pub(crate) position: u32,
    pub(crate) backend: u32,
    /// Start of the copy that the work carries out, 0 of none.
    pub(crate) cause: u64,
}

/// A command, with what its arguments say.
#[derive(Debug)]
pub(crate) enum Command {
    Dispatch(Option<Arc<Pipeline>>),
    Copy(u64),
    Fill(u64),
}

/// Describes a command that is being recorded on this thread.
pub(crate) fn work(this: &ThisThread, command: Command) -> CommandWork {
    let place = place(this, &command);
    let (kind, name, bytes) = match command {
        Command::Dispatch(Some(pipeline)) => (WORK_KERNEL, Name::Kernel(pipeline), 0),
        Command::Dispatch(None) => (WORK_KERNEL, Name::Text(""), 0),
        Command::Copy(bytes) => {
            let (name, direction) = copy(this, place);
            (WORK_COPY | direction << WORK_DIRECTION_BIT, Name::Text(name), bytes)
        }
        Command::Fill(bytes) => (WORK_FILL, Name::Text(fill(place)), bytes),
    };
    CommandWork::new(kind, name, place, bytes)
}

fn place(this: &ThisThread, command: &Command) -> WorkPlace {
    let cause = this.copy_start.get();
    // SAFETY: set for the length of the graph by the split that owns it, on this
    // thread only.
    let Some(visits) = (unsafe { this.visits.get().as_mut() }) else {
        return WorkPlace { split: NONE, position: NO_NODE, backend: NONE, cause };
    };
    // ggml clears its scratch memory before the first node. In versions that go through
    // the graph twice it has asked about nodes by then, so only a dispatch begins the work.
    let prologue = !visits.has_worked() && matches!(command, Command::Fill(_));
    let position = visits.position().filter(|_| !prologue).unwrap_or(NO_NODE);
    if !prologue {
        visits.note_work();
    }
    WorkPlace { split: visits.split, position, backend: visits.backend, cause }
}

fn fill(place: WorkPlace) -> &'static str {
    match (place.split, place.position) {
        (NONE, _) => "buffer clear",
        (_, NO_NODE) => "graph prologue",
        _ => "fill",
    }
}

fn copy(this: &ThisThread, place: WorkPlace) -> (&'static str, u8) {
    match this.copying.get() {
        copies::READING => ("read from the device", layout::COPY_DEVICE_TO_HOST),
        copies::WRITING => ("write to the device", layout::COPY_HOST_TO_DEVICE),
        copies::COPYING => ("tensor copy", COPY_DEVICE_TO_DEVICE),
        _ if place.position != NO_NODE => ("copy", COPY_DEVICE_TO_DEVICE),
        _ => ("buffer copy", COPY_DEVICE_TO_DEVICE),
    }
}
