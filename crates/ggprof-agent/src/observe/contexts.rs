//! Contexts of libllama, told apart by number, and what programs do to their memory. Newer versions
//! of libllama have an object for the memory, which the program asks the context for.

use ggprof_spool::layout::{self, ContextChange, NONE};

use super::this_thread::ThisThread;
use crate::clock;
use crate::fault::fault_point;
use crate::ffi::api::Pointer;
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::recorder::current;

struct LiveContext {
    context: usize,
    /// The object for its memory; 0 until the program asks for it.
    memory: usize,
    id: u32,
    /// The last recorded call, if nobody looked at its embeddings yet.
    unread: Option<u32>,
}

struct Contexts {
    live: Vec<LiveContext>,
    count: u32,
}

/// More than a program has; one whose frees are not seen must not fill the memory.
const MOST_LIVE: usize = 1024;

static CONTEXTS: Ranked<{ rank::CONTEXTS }, Contexts> =
    Ranked::new(Contexts { live: Vec::new(), count: 0 });

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
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
    fault_point!();
    contexts.live.push(LiveContext { context: context as usize, memory: 0, id, unread: None });
    id
}

/// The program asked a context for its memory.
pub(crate) fn note_memory(context: Pointer, memory: usize) {
    let id = number(context);
    fault_point!();
    let mut contexts = CONTEXTS.lock();
    if let Some(live) = contexts.live.iter_mut().find(|live| live.id == id) {
        live.memory = memory;
    }
}

/// A call has computed something in a context.
pub(crate) fn note_computed(id: u32, call: u32) {
    if let Some(live) = CONTEXTS.lock().live.iter_mut().find(|live| live.id == id) {
        live.unread = Some(call);
    }
}

/// The program looks at the embeddings of the last call, maybe at one token's after the other.
pub(crate) fn note_embeddings_read(this: &ThisThread, context: Pointer) {
    if current::recording().is_none() {
        return;
    }
    let (id, call) = {
        let mut contexts = CONTEXTS.lock();
        let its = contexts.live.iter_mut().find(|live| live.context == context as usize);
        let Some((id, Some(call))) = its.map(|live| (live.id, live.unread.take())) else { return };
        (id, call)
    };
    let read = of_all_sequences(layout::CONTEXT_EMBEDDINGS_READ);
    write_change(this, id, ContextChange { other: call as i32, ..read });
}

/// A change that concerns all of a context: `what` is one of `layout::CONTEXT_*`.
pub(crate) fn of_all_sequences(what: u8) -> ContextChange {
    ContextChange { what, sequence: -1, first: -1, last: -1, ..Default::default() }
}

/// The program changed a context. `handle` is that of the context or of its memory; which context it is, and
/// when it was changed, is filled in.
pub(crate) fn note_change(this: &ThisThread, handle: Pointer, change: ContextChange) {
    if current::recording().is_some() {
        write_change(this, number_behind(handle), change);
    }
}

fn number_behind(handle: Pointer) -> u32 {
    let contexts = CONTEXTS.lock();
    let is_its = |live: &&LiveContext| [live.context, live.memory].contains(&(handle as usize));
    contexts.live.iter().find(is_its).map_or(NONE, |live| live.id)
}

fn write_change(this: &ThisThread, context: u32, change: ContextChange) {
    fault_point!();
    this.with_lane(|lane| {
        lane.put(&ContextChange { context, ticks: clock::ticks(), ..change }.encode());
    });
}

/// A trial begins or ends. It comes before the first batch, so that the context has no number yet.
pub(crate) fn note_trial(this: &ThisThread, context: Pointer, what: u8) {
    if current::recording().is_some() {
        number(context);
        note_change(this, context, of_all_sequences(what));
    }
}

/// The program frees a context: another one may get its address. So it is forgotten first, whatever
/// happens to the record.
pub(crate) fn note_free(this: &ThisThread, context: Pointer) {
    let number = number_behind(context);
    CONTEXTS.lock().live.retain(|live| live.context != context as usize);
    if current::recording().is_some() {
        write_change(this, number, of_all_sequences(layout::CONTEXT_FREED));
    }
}
