//! Looks once at each library, whether loaded at the start or later, for a ggml that only this
//! library can reach (`linked_in`), and for ggml's RPC (`sockets`).
//!
//! The agent cannot call `dlopen` in the program's place, because the loader's search path depends
//! on the caller. But after opening a library, a program asks for its functions. So the agent
//! stands in for the loader's functions that programs use for that, and jumps on to the loader,
//! which still sees the original caller.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::asked_for::{self, AnsweredBy, Ask};
use super::linked_in::{self, SIGNS};
use super::sockets;
use super::turn::{Turn, Turns};
use crate::arch;
use crate::c_library::only_in_glibc;
use crate::fault::fault_point;
use crate::observe::device_api;
use crate::observe::fail_open::guard;
use crate::observe::this_thread::ThisThread;
use crate::patch::exports::Listed;
use crate::patch::loaded_object::{self, LoadedObject, Place, is_gone, is_of_the_system};
use crate::patch::loader;
use crate::patch::scope::Scope;
use crate::patch::{self, exports, symbols};
use crate::recorder::current;
use crate::{lock, quiet_log};

const SYMBOL: u32 = 0;
const OPEN: u32 = 2;
const NAMES: [&CStr; 3] = [c"dlsym", c"dlvsym", c"dlopen"];

macro_rules! question {
    ($name:ident, $number:expr) => {
        arch::stand_in! {
            /// Jumps to the loader's function of this name, after looking at what is new.
            ///
            /// # Safety
            /// Called by programs as libc's own.
            #[unsafe(no_mangle)]
            fn $name, asks before_answer($number)
        }
    };
}

arch::stand_in! {
    /// The same for `dlsym`, by which programs ask for functions of libllama.
    ///
    /// # Safety
    /// Called by programs as libc's own.
    #[unsafe(no_mangle)]
    fn dlsym, asks before_symbol(first, second, stack, SYMBOL)
}

// musl's symbols have no versions.
only_in_glibc! {
    const VERSIONED_SYMBOL: u32 = 1;

    question!(dlvsym, VERSIONED_SYMBOL);
}
question!(dlopen, OPEN);

/// The loader's functions by name, with what stands in for them.
pub(super) fn stand_ins() -> [(&'static CStr, usize); 2] {
    [
        (NAMES[OPEN as usize], dlopen as *const () as usize),
        (NAMES[SYMBOL as usize], dlsym as *const () as usize),
    ]
}

/// Returns the function that is to answer: the loader's, or one of ours that asks the loader.
extern "C-unwind" fn before_symbol(
    handle: usize,
    name: *const c_char,
    stack: *const usize,
    number: u32,
) -> usize {
    let own = before_answer(number);
    // SAFETY: `stack` is that of the call that we stand in for, which has not returned.
    if loaded_object::is_ours(unsafe { arch::caller_of(stack) }) {
        return own;
    }
    // SAFETY: the call asks for this name.
    match unsafe { asked_for::answer_to(handle, name) } {
        AnsweredBy::Loader => own,
        AnsweredBy::Us(_) => ours_if_it_leads_there as *const () as usize,
        AnsweredBy::Nobody => behind_us as *const () as usize,
    }
}

/// Stands in for `dlsym` where one of libllama's functions is asked for.
unsafe extern "C-unwind" fn ours_if_it_leads_there(handle: usize, name: *const c_char) -> usize {
    // SAFETY: what the program asks.
    let (found, answer) = unsafe { (ask_loader(handle, name), asked_for::answer_to(handle, name)) };
    match answer {
        AnsweredBy::Us(entry) => asked_for::instead_of(found, entry),
        AnsweredBy::Loader | AnsweredBy::Nobody => found,
    }
}

/// Stands in for `dlsym` where only the agent has the function. The loader finds none behind us, and
/// keeps the message for `dlerror` that programs then ask for.
unsafe extern "C-unwind" fn behind_us(_: usize, name: *const c_char) -> usize {
    // SAFETY: what the program asks.
    let found = unsafe { ask_loader(libc::RTLD_NEXT as usize, name) };
    // `RTLD_NEXT` means behind the library that the call returns to, so the call above must not be
    // the last thing here: a compiler would make it a jump, which returns to the program.
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
    if lock::are_abandoned() || current::is_inert() {
        // Not even a guard: to open a library is not yet to use ggml. And before the agent begins,
        // sanitizers ask here for the functions that they stand in for: the guard calls one of them.
        return loaders_own(number);
    }
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
        let found = loader::own(NAMES[number as usize]);
        own.store(found.unwrap_or(0), Ordering::Relaxed);
    }
    match own.load(Ordering::Relaxed) {
        0 => nothing as *const () as usize,
        own => own,
    }
}

/// Serves in place of a loader function that this C library does not have.
extern "C-unwind" fn nothing() -> usize {
    0
}

/// How often something was opened. The loader has a count of its own, but asking for it takes one of the
/// loader's locks, and a child that is forked meanwhile could never ask again.
static OPENINGS: AtomicU32 = AtomicU32::new(0);
/// The loader's counts of what was loaded and unloaded, as of the last look.
#[unsafe(link_section = ".data.asleep")]
static LOADED: AtomicU64 = AtomicU64::new(0);
#[unsafe(link_section = ".data.asleep")]
static UNLOADED: AtomicU64 = AtomicU64::new(0);
/// There was something to look at.
#[unsafe(link_section = ".data.asleep")]
static HAS_LOOKED: AtomicBool = AtomicBool::new(false);
static SEEN: Turns<Vec<Place>> = Turns::new(Vec::new());

/// Looks at what was loaded since the last time.
#[unsafe(link_section = ".text.asleep")]
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
    // Most processes never have any such object.
    if HAS_LOOKED.load(Ordering::Acquire) || exports::any(may_matter) {
        HAS_LOOKED.store(true, Ordering::Release);
        if !look_at_new() {
            // Another thread does; the next call comes soon.
            return ThisThread::with(|this| this.looked_at.set(u32::MAX));
        }
    }
    device_api::all().iter().for_each(|api| api.note_loaded());
    // What is loaded from here on is looked at the next time.
    LOADED.store(loaded, Ordering::Release);
    UNLOADED.store(unloaded, Ordering::Release);
}

/// Half of what the processor's backend alone has, in the smallest builds; shells have less. (A library
/// that shows one of the names may have less, too, and call another.)
const LEAST_CODE: usize = 128 << 10;

/// Whether an object may have something that is looked for.
#[unsafe(link_section = ".text.asleep")]
fn may_matter(object: Listed<'_>) -> bool {
    if object.is_ours() || is_of_the_system(object.base(), |address| object.holds(address)) {
        return false;
    }
    let mut signs = SIGNS.iter().chain(&ALL_THERE_WAS).chain([&sockets::SIGN]);
    object.code_bytes() >= LEAST_CODE || signs.any(|sign| object.shows(sign))
}

/// False if another thread is at it for too long.
fn look_at_new() -> bool {
    let Some(mut turn) = SEEN.take() else { return false };
    fault_point!();
    let closed = patch::linked_in::forget_closed();
    let now = loaded_object::all();
    let mut mattering = Vec::new();
    exports::any(|object| {
        mattering.extend(object.dynamic().filter(|_| may_matter(object)));
        false
    });
    turn.value.retain(|place| {
        !closed.contains(place) && now.iter().any(|object| object.place() == *place)
    });
    for object in now {
        if !turn.value.contains(&object.place()) {
            // Before it is looked at, so that it is not tried again if that fails.
            turn.value.push(object.place());
            if mattering.contains(&object.dynamic) {
                look_at(&object, &turn);
            }
        }
    }
    true
}

fn look_at(object: &LoadedObject, turn: &Turn<'_, Vec<Place>>) {
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
        // SAFETY: it has just been loaded, and threads that ask the loader for its functions wait for this
        // turn. Those that the library's own constructors have started do not ask: that none of them is at
        // the start of such a function is assumed.
        match turn.hook(|| unsafe { prepared.install() }) {
            Some(()) => {}
            None => prepared.give_up(),
        }
        prepared.conclude();
    }
}

/// What a ggml from before backends existed shows. Later ones show these functions as well.
const ALL_THERE_WAS: [&CStr; 2] = [c"ggml_init", c"ggml_graph_compute"];

/// A ggml from before backends existed calls none of the functions that the agent knows.
fn say_if_old(object: &LoadedObject) {
    if ALL_THERE_WAS.iter().all(|name| exports::shows(object.base, object.dynamic, name)) {
        quiet_log::say(&[
            b"nothing is recorded of ",
            object.name.to_bytes(),
            if object.name.is_empty() { b"this program" } else { b"" },
            b": its ggml is from before backends existed (2023)",
        ]);
    }
}
