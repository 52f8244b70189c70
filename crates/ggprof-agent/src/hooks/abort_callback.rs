//! A program may ask ggml for the function that sets its abort callback, instead of calling it by
//! name. If `observe::ticking` needs the callback, the program gets the agent's function.

use std::ffi::{CStr, c_char, c_void};

use super::{entry, library};
use crate::fault::fault_point;
use crate::ffi::api::Pointer;
use crate::observe::ticking::setter_in;
use crate::patch::loaded_object::LoadedObject;

/// The name programs ask ggml's registry for.
const ASKED_FOR: &CStr = c"ggml_backend_set_abort_callback";

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
    fault_point!();
    let object = LoadedObject::containing(real as usize);
    match object.filter(|object| !library::announces_ops(object)) {
        Some(object) if setter_in(&object).is_some() => entry::set_abort_callback as *mut c_void,
        _ => real,
    }
}
