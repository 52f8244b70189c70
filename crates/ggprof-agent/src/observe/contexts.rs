//! Contexts of libllama, told apart by number, and what programs do to their memory. Newer versions
//! of libllama have an object for the memory, which the program asks the context for.

use ggprof_spool::layout::{self, ContextChange, NONE};

use super::this_thread::ThisThread;
use crate::clock;
use crate::ffi::api::Pointer;
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::recorder::current;

struct Live {
    context: usize,
    /// 0 until the program asks for it.
    memory: usize,
    id: u32,
}

struct Contexts {
    live: Vec<Live>,
    count: u32,
}

/// More than a program has; one whose frees are not seen must not fill the memory.
const MOST_LIVE: usize = 1024;

static CONTEXTS: Ranked<{ rank::CONTEXTS }, Contexts> =
    Ranked::new(Contexts { live: Vec::new(), count: 0 });

/// For the length of a fork.
pub(crate) fn lock_of_all() -> &'static dyn HeldAtFork {
    &CONTEXTS
}

/// The number of a context.
pub(crate) fn number(context: Pointer) -> u32 {
    let mut contexts = CONTEXTS.lock();
    let known = contexts.live.iter().find(|live| live.context == context as usize);
    if let Some(live) = known {
        return live.id;
    }
    if contexts.live.len() >= MOST_LIVE {
        contexts.live.remove(0);
    }
    contexts.count += 1;
    let id = contexts.count;
    contexts.live.push(Live { context: context as usize, memory: 0, id });
    id
}

/// The program asked a context for its memory.
pub(crate) fn note_memory(context: Pointer, memory: usize) {
    let id = number(context);
    let mut contexts = CONTEXTS.lock();
    if let Some(live) = contexts.live.iter_mut().find(|live| live.id == id) {
        live.memory = memory;
    }
}

/// What a program did to a context or its memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// `layout::CONTEXT_*`.
    pub(crate) what: u8,
    pub(crate) sequence: i32,
    pub(crate) first: i32,
    pub(crate) last: i32,
    pub(crate) other: i32,
}

impl Change {
    pub(crate) fn of_all(what: u8) -> Change {
        Change { what, sequence: -1, first: -1, last: -1, other: 0 }
    }
}

/// `handle` is that of a context or of its memory.
pub(crate) fn note_change(this: &ThisThread, handle: Pointer, change: Change) {
    if current::recording().is_none() {
        return;
    }
    let context = {
        let contexts = CONTEXTS.lock();
        let is_its = |live: &&Live| [live.context, live.memory].contains(&(handle as usize));
        contexts.live.iter().find(is_its).map_or(NONE, |live| live.id)
    };
    this.with_lane(|lane| {
        let Change { what, sequence, first, last, other } = change;
        let ticks = clock::ticks();
        let record =
            ContextChange { what, context, sequence, first, last, other, ticks, reserved: 0 };
        lane.put(&record.encode());
    });
}

/// The program frees a context: another one may get its address.
pub(crate) fn note_free(this: &ThisThread, context: Pointer) {
    note_change(this, context, Change::of_all(layout::CONTEXT_FREED));
    CONTEXTS.lock().live.retain(|live| live.context != context as usize);
}
