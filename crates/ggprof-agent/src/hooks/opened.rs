//! Looks once at each library, whether loaded at the start or later, for a ggml that only this
//! library can reach (`linked_in`), and for ggml's RPC (`sockets`).
//!
//! The agent cannot call `dlopen` in the program's place, because the loader's search path depends
//! on the caller. But after opening a library, a program asks for its functions. So the agent
//! stands in for the loader's functions that programs use for that, and jumps on to the loader,
//! which still sees the original caller.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::asked_for::{self, Answer, Ask};
use super::linked_in::{self, SIGNS};
use super::sockets;
use super::turn::{Turn, Turns};
use crate::arch;
use crate::fault::fault_point;
use crate::observe::device_api;
use crate::observe::fail_open::guard;
use crate::observe::this_thread::ThisThread;
use crate::patch::loaded_object::{self, LoadedObject, Place, is_gone};
use crate::patch::scope::Scope;
use crate::patch::{self, exports, symbols};
use crate::quiet_log;
use crate::recorder::current;

const SYMBOL: u32 = 0;
#[cfg(target_env = "gnu")]
const VERSIONED_SYMBOL: u32 = 1;
const OPEN: u32 = 2;
const NAMES: [&CStr; 3] = [c"dlsym", c"dlvsym", c"dlopen"];

macro_rules! question {
    ($name:ident, $number:expr) => {
        arch::stand_in! {
            /// The loader's function of this name, once we have looked.
            ///
            /// # Safety
            /// Called by programs as libc's own.
            #[unsafe(no_mangle)]
            fn $name, asks before_answer($number)
        }
    };
}

arch::stand_in! {
    /// The same for the one by which libllama's functions are asked for.
    ///
    /// # Safety
    /// Called by programs as libc's own.
    #[unsafe(no_mangle)]
    fn dlsym, asks before_symbol(first, second, stack, SYMBOL)
}

// musl has no versions, and a program that looks whether there is this function must find none.
#[cfg(target_env = "gnu")]
question!(dlvsym, VERSIONED_SYMBOL);
question!(dlopen, OPEN);

/// The loader's functions by name, with what stands in for them.
pub(super) fn stand_ins() -> [(&'static CStr, usize); 2] {
    [
        (NAMES[OPEN as usize], dlopen as *const () as usize),
        (NAMES[SYMBOL as usize], dlsym as *const () as usize),
    ]
}

/// Returns what is to answer: the loader's function, or ours that asks it.
extern "C-unwind" fn before_symbol(
    handle: usize,
    name: *const c_char,
    stack: *const usize,
    number: u32,
) -> usize {
    let own = before_answer(number);
    // SAFETY: this is about the call that we stand in for.
    if loaded_object::is_ours(unsafe { arch::caller_of(stack) }) {
        return own;
    }
    // SAFETY: it asks for this name.
    match unsafe { asked_for::answer_to(handle, name) } {
        Answer::Loaders => own,
        Answer::Ours(_) => ours_if_it_leads_there as *const () as usize,
        Answer::Nobodys => behind_us as *const () as usize,
    }
}

/// Stands in for `dlsym` where one of libllama's functions is asked for.
unsafe extern "C-unwind" fn ours_if_it_leads_there(handle: usize, name: *const c_char) -> usize {
    // SAFETY: what the program asks.
    let (found, answer) = unsafe { (ask_loader(handle, name), asked_for::answer_to(handle, name)) };
    match answer {
        Answer::Ours(entry) => asked_for::instead_of(found, entry),
        Answer::Loaders | Answer::Nobodys => found,
    }
}

/// Stands in for `dlsym` where only the agent has the function. The loader finds none behind us, and
/// keeps the message for `dlerror` that programs then ask for.
unsafe extern "C-unwind" fn behind_us(_: usize, name: *const c_char) -> usize {
    // SAFETY: what the program asks.
    let found = unsafe { ask_loader(libc::RTLD_NEXT as usize, name) };
    // The loader looks behind whoever the call returns to. Something is still to be done here, so
    // that is us: a compiler may turn a last call into a jump, and then it would be the program.
    if loaded_object::is_ours(found) { 0 } else { found }
}

/// # Safety
/// As for `dlsym`.
unsafe fn ask_loader(handle: usize, name: *const c_char) -> usize {
    // SAFETY: the loader's function of this type.
    let ask = unsafe { std::mem::transmute::<usize, Option<Ask>>(loaders_own(SYMBOL)) };
    // SAFETY: the caller's contract.
    ask.map_or(0, |ask| unsafe { ask(handle, name) })
}

/// Returns the loader's function, which the caller then jumps to.
extern "C-unwind" fn before_answer(number: u32) -> usize {
    guard((), |this| {
        // The first thread that asks looks at what others have opened. What this thread is about
        // to open is not loaded yet: this thread looks at it when it asks next.
        let openings = OPENINGS.load(Ordering::Acquire);
        if this.looked_at.replace(openings) != openings {
            look();
        }
        if number == OPEN {
            OPENINGS.fetch_add(1, Ordering::AcqRel);
        }
    });
    loaders_own(number)
}

/// Libc's, or that of another library that stands in for it and comes after the agent.
fn loaders_own(number: u32) -> usize {
    static OWN: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];
    let own = &OWN[number as usize];
    if own.load(Ordering::Relaxed) == 0 {
        let found = exports::behind_us(NAMES[number as usize]);
        own.store(found.unwrap_or(0), Ordering::Relaxed);
    }
    own.load(Ordering::Relaxed)
}

/// How often something was opened. To ask the loader for its own count takes a lock of its, and a
/// child that is forked meanwhile could never ask again.
static OPENINGS: AtomicU32 = AtomicU32::new(0);
/// The loader's counts of what was loaded and unloaded, when it was looked at last.
static LOADED: AtomicU64 = AtomicU64::new(0);
static UNLOADED: AtomicU64 = AtomicU64::new(0);
static SEEN: Turns<Vec<Place>> = Turns::new(Vec::new());

/// Looks at what was loaded since the last time.
pub(crate) fn look() {
    if !current::is_on() {
        return;
    }
    let (loaded, unloaded) = loaded_object::changes();
    let is_same =
        LOADED.load(Ordering::Acquire) == loaded && UNLOADED.load(Ordering::Acquire) == unloaded;
    if is_same {
        return;
    }
    // The next call comes soon.
    let Some(mut turn) = SEEN.take() else {
        return ThisThread::with(|this| this.looked_at.set(u32::MAX));
    };
    fault_point!();
    let closed = patch::linked_in::forget_closed();
    let now = loaded_object::all();
    turn.value.retain(|place| {
        !closed.contains(place) && now.iter().any(|object| object.place() == *place)
    });
    for object in now {
        if !turn.value.contains(&object.place()) {
            // Before it is looked at, so that it is not tried again if that fails.
            turn.value.push(object.place());
            look_at(&object, &turn);
        }
    }
    device_api::all().iter().for_each(|api| api.note_loaded());
    // What was loaded meanwhile is looked at the next time.
    LOADED.store(loaded, Ordering::Release);
    UNLOADED.store(unloaded, Ordering::Release);
}

fn look_at(object: &LoadedObject, turn: &Turn<'_, Vec<Place>>) {
    if loaded_object::is_ours(object.dynamic) || object.is_of_the_system() {
        return;
    }
    // Keeps it loaded while it is looked at, even if the program closes it.
    let held = Scope::of(&object.name);
    if held.is_none() || is_gone(&object.place()) {
        return;
    }
    fault_point!();
    sockets::hook(object);
    let shows = SIGNS.iter().any(|sign| exports::shows(object.base, object.dynamic, sign));
    if !shows && !symbols::may_hide(object, &SIGNS) {
        return say_if_old(object);
    }
    if let Some(mut prepared) = linked_in::prepare(object) {
        // SAFETY: it has just been loaded, and every thread that could use it waits for this turn.
        match turn.hook(|| unsafe { prepared.install() }) {
            Some(()) => {}
            None => prepared.give_up(),
        }
        prepared.conclude();
    }
}

/// A ggml from before backends existed calls none of the functions that the agent knows.
fn say_if_old(object: &LoadedObject) {
    const ALL_THERE_WAS: [&CStr; 2] = [c"ggml_init", c"ggml_graph_compute"];
    if ALL_THERE_WAS.iter().all(|name| exports::shows(object.base, object.dynamic, name)) {
        quiet_log::say(&[
            b"nothing is recorded of ",
            object.name.to_bytes(),
            if object.name.is_empty() { b"this program" } else { b"" },
            b": its ggml is from before backends existed (2023)",
        ]);
    }
}
