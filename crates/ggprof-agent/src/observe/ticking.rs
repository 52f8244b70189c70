//! For CPU libraries that do not announce their ops with a call that can be seen (old versions,
//! `-Bsymbolic` builds): ggml's public abort callback, which thread 0 calls after each node it has
//! computed. `ticks` turns these moments into ops.
//!
//! The callback belongs to the program, and there is only one. The agent's callback is set while a
//! recorded graph runs, and calls the program's. To know the program's callback, the agent stands
//! in for both ways of setting it (`hooks::entry`). Between graphs, ggml has what the program gave
//! it, so nothing of the agent is left when recording stops or a backend is freed. Libraries whose
//! ops are seen in another way are left alone.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::adopted;
use super::this_thread::ThisThread;
use super::ticks::Ticks;
use crate::clock;
use crate::fault::fault_point;
use crate::ffi::api::{Pointer, Symbols};
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::patch::inline;
use crate::patch::loaded_object::LoadedObject;

/// ggml's function that sets it.
const SETTER: &CStr = c"ggml_backend_cpu_set_abort_callback";

pub(crate) type AbortCallback = unsafe extern "C-unwind" fn(*mut c_void) -> bool;
pub(crate) type Setter = unsafe extern "C-unwind" fn(Pointer, Option<AbortCallback>, *mut c_void);

/// The program's own callback for a backend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramCallback {
    backend: usize,
    callback: AbortCallback,
    data: usize,
}

/// The callbacks of live backends.
static PROGRAM_CALLBACKS: Ranked<{ rank::ABORT_CALLBACKS }, Vec<ProgramCallback>> =
    Ranked::new(Vec::new());

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
    &PROGRAM_CALLBACKS
}
/// How often a callback was set.
static CALLBACK_CHANGES: AtomicU64 = AtomicU64::new(0);

/// Our callback is in a backend for as long as this lives.
#[derive(Debug)]
pub(crate) struct Ticking {
    setter: Setter,
    backend: Pointer,
    ticks: NonNull<Ticks>,
}

impl Ticking {
    /// For the next graph of the backend, with room for the ticks of so many nodes.
    ///
    /// # Safety
    /// `setter` belongs to the backend's own library, and the backend outlives the value.
    pub(crate) unsafe fn begin(
        this: &ThisThread,
        setter: Setter,
        backend: Pointer,
        nodes: usize,
    ) -> Ticking {
        let ticks = Ticks::with_room_for(nodes, this, program_callback(backend as usize));
        fault_point!();
        let ticking = Ticking { setter, backend, ticks: NonNull::from(Box::leak(ticks)) };
        // SAFETY: the caller's contract; the ticks live until the callback is out again.
        unsafe { setter(backend, Some(tick), ticking.ticks.as_ptr().cast()) };
        fault_point!();
        ticking
    }

    pub(crate) fn ticks(&self) -> &Ticks {
        // SAFETY: freed by drop only, and only shared references to it are made.
        unsafe { self.ticks.as_ref() }
    }

    /// An exception made thread 0 leave the graph. Other threads may still be in it, and tick.
    pub(crate) fn end_unwound(self) {
        self.put_back();
        std::mem::forget(self);
    }

    /// The program has left the graph without returning, and may have freed the backend: ggml keeps our
    /// callback, which calls the program's, until the next graph. Gives how often it ticked.
    pub(crate) fn leave(self) -> usize {
        let ticks = self.ticks().count();
        std::mem::forget(self);
        ticks
    }

    /// Gives ggml the program's callback again: the newest, as the program may set another
    /// one in the middle, on any thread.
    fn put_back(&self) {
        loop {
            let changes = CALLBACK_CHANGES.load(Ordering::Acquire);
            let own = program_callback(self.backend as usize);
            let callback = own.map(|own| own.callback);
            let data = own.map_or(0, |own| own.data) as *mut c_void;
            // SAFETY: `begin`'s contract; what the program gave ggml before, or nothing.
            unsafe { (self.setter)(self.backend, callback, data) };
            if CALLBACK_CHANGES.load(Ordering::Acquire) == changes {
                return;
            }
        }
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.put_back();
        // SAFETY: made by `begin`. ggml has the program's callback again, and the graph that
        // ran with ours is over.
        drop(unsafe { Box::from_raw(self.ticks.as_ptr()) });
    }
}

/// ggml has computed a node. True would stop the graph, and only the program may ask for
/// that. Old versions call this on all threads.
unsafe extern "C-unwind" fn tick(ticks: *mut c_void) -> bool {
    // SAFETY: in ggml's hands for as long as `Ticking` lives.
    let ticks = unsafe { &*ticks.cast::<Ticks>() };
    ThisThread::with(|this| ticks.note(this, clock::ticks()));
    match ticks.program_callback {
        // SAFETY: what the program gave ggml to call, with its own data.
        Some(own) => unsafe { (own.callback)(own.data as *mut c_void) },
        None => false,
    }
}

fn program_callback(backend: usize) -> Option<ProgramCallback> {
    let all = PROGRAM_CALLBACKS.lock();
    all.iter().find(|own| own.backend == backend).copied()
}

/// The program sets its callback; the caller then passes it on.
pub(crate) fn note_program_callback(
    backend: Pointer,
    callback: Option<AbortCallback>,
    data: *mut c_void,
) {
    let mut all = PROGRAM_CALLBACKS.lock();
    all.retain(|own| own.backend != backend as usize);
    if let Some(callback) = callback {
        all.push(ProgramCallback { backend: backend as usize, callback, data: data as usize });
    }
    CALLBACK_CHANGES.fetch_add(1, Ordering::Release);
}

/// The program frees a backend: whatever is at its address later has no callback yet.
pub(crate) fn forget(backend: Pointer) {
    note_program_callback(backend, None, std::ptr::null_mut());
}

/// The real setter of the library that holds the backend's functions. It is found
/// by what the call is about and not by who calls: the program got the address
/// from ggml, and need not see that library.
pub(crate) fn setter_of(backend: Pointer) -> Option<Setter> {
    if backend.is_null() {
        return None;
    }
    setter_in(&LoadedObject::containing(adopted::get_name_of(backend))?)
}

pub(crate) fn setter_in(object: &LoadedObject) -> Option<Setter> {
    let found = Symbols::of(object)?.find(SETTER);
    let is_own = object.holds(inline::function_behind(found));
    // SAFETY: ggml's function of this name has this signature.
    is_own.then(|| unsafe { std::mem::transmute::<usize, Setter>(found) })
}
