//! Where a CPU library does not announce its ops by a call that can be seen (old
//! versions, `-Bsymbolic` builds): ggml's public abort callback, which thread 0
//! calls after each node it has computed. `observe::ticks` turns the moments into
//! ops.
//!
//! The callback belongs to the program, and there is only one. Ours is put in
//! before a graph and calls the program's; to know the program's, the two ways of
//! setting it are stood in for. Libraries whose ops are seen otherwise are left
//! alone.

use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, PoisonError};

use super::{entry, library};
use crate::clock;
use crate::ffi::api::{Pointer, Symbols};
use crate::observe::backends;
use crate::patch::loaded_object::LoadedObject;
use crate::recorder::this_thread::ThisThread;

/// The name programs ask ggml's registry for, and the function behind it.
const ASKED_FOR: &CStr = c"ggml_backend_set_abort_callback";
const SETTER: &CStr = c"ggml_backend_cpu_set_abort_callback";

pub(crate) type Callback = unsafe extern "C-unwind" fn(*mut c_void) -> bool;
pub(crate) type Setter = unsafe extern "C-unwind" fn(Pointer, Option<Callback>, *mut c_void);

/// The program's own callback for a backend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Programs {
    backend: usize,
    callback: Callback,
    data: usize,
}

static PROGRAMS: Mutex<Vec<Programs>> = Mutex::new(Vec::new());

/// Puts our callback in for the next graph of the backend, and gives the program's.
///
/// # Safety
/// `setter` belongs to the live backend's own library.
pub(crate) unsafe fn install(setter: Setter, backend: Pointer) -> Option<Programs> {
    // SAFETY: the caller's contract; the backend is also the callback's data.
    unsafe { setter(backend, Some(tick), backend) };
    programs(backend as usize)
}

/// ggml has computed a node on this thread. True would stop the graph, and only
/// the program may ask for that.
unsafe extern "C-unwind" fn tick(backend: *mut c_void) -> bool {
    let programs = ThisThread::with(|this| {
        // SAFETY: set for the length of the graph by the split that owns it, on
        // this thread only (`observe::ticks`).
        match unsafe { this.ticks.get().as_mut() } {
            Some(ticks) => {
                ticks.note(clock::ticks());
                ticks.programs
            }
            // A graph that is not recorded: the split did not look it up.
            None => programs(backend as usize),
        }
    });
    match programs {
        // SAFETY: what the program gave ggml to call, with its own data.
        Some(own) => unsafe { (own.callback)(own.data as *mut c_void) },
        None => false,
    }
}

fn programs(backend: usize) -> Option<Programs> {
    let all = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|own| own.backend == backend).copied()
}

/// The program set its callback: remembered, and passed on.
pub(crate) fn note_programs(backend: Pointer, callback: Option<Callback>, data: *mut c_void) {
    let mut all = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|own| own.backend != backend as usize);
    if let Some(callback) = callback {
        all.push(Programs { backend: backend as usize, callback, data: data as usize });
    }
}

/// What to give a program that asks ggml for the function of this name. ggml may
/// itself answer with our stand-in: it takes the address by the symbol's name.
pub(crate) fn stand_in(name: *const c_char, real: Pointer) -> Pointer {
    if name.is_null() || real.is_null() {
        return real;
    }
    // SAFETY: ggml was given the same pointer as a C string.
    if unsafe { CStr::from_ptr(name) } != ASKED_FOR {
        return real;
    }
    let object = LoadedObject::containing(real as usize);
    match object.filter(|object| !library::announces_ops(object)) {
        Some(object) if setter_in(&object).is_some() => entry::set_abort_callback as *mut c_void,
        _ => real,
    }
}

/// The real setter of the library that holds the backend's functions. It is found
/// by what the call is about and not by who calls: the program got the address
/// from ggml, and need not see that library.
pub(crate) fn setter_of(backend: Pointer) -> Option<Setter> {
    if backend.is_null() {
        return None;
    }
    setter_in(&LoadedObject::containing(backends::get_name_of(backend))?)
}

pub(crate) fn setter_in(object: &LoadedObject) -> Option<Setter> {
    let found = Symbols::of(object)?.find(SETTER);
    // SAFETY: ggml's function of this name has this signature.
    object.holds(found).then(|| unsafe { std::mem::transmute::<usize, Setter>(found) })
}
