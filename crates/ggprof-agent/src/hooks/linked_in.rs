//! A program or library with ggml linked in may call ggml's functions directly: it hides them, or
//! was linked with `-Bsymbolic`. Then the dynamic linker binds nothing, and no call arrives at
//! `entry`. If the object kept its symbols, the entry points are hooked at their own addresses: in
//! the program and its libraries before `main`, and in a library that is opened later before its
//! first use (`opened`).

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use super::entry::{self, Entry};
use crate::fault::fault_point;
use crate::patch::got;
use crate::patch::inline::{FunctionToHook, InlineHooks, StandIn};
use crate::patch::linked_in::HookedObject;
use crate::patch::loaded_object::LoadedObject;
use crate::patch::scope::Scope;
use crate::patch::symbols::{self, Function};
use crate::quiet_log;

/// Functions that every program that computes with ggml calls in some way. Searching for their
/// names first is quick, so other programs pay no more than that.
pub(super) const SIGNS: [&CStr; 2] = [c"ggml_backend_sched_new", c"ggml_backend_graph_compute"];

/// The first library whose calls of its own ggml cannot be seen, and why. If no other calls arrive
/// either, this explains why nothing was recorded.
#[unsafe(link_section = ".data.asleep")]
static REFUSED: OnceLock<(CString, &'static str)> = OnceLock::new();

pub(crate) fn refused() -> Option<&'static (CString, &'static str)> {
    REFUSED.get()
}

/// Prepares hooks for an object's own ggml, if it calls one directly. They are not installed yet.
pub(crate) fn prepare(object: &LoadedObject) -> Option<Prepared> {
    let scope = Scope::of(&object.name)?;
    let has = |symbol: &CStr| object.holds(scope.find(symbol));
    let shows = SIGNS.iter().any(|sign| has(sign));
    let calls_directly = if shows {
        // Another profiler shows some of ggml's functions as well.
        has(c"ggml_init") && !calls_by_name(object)
    } else {
        symbols::may_hide(object, &SIGNS)
    };
    if !calls_directly {
        return None;
    }
    let functions = symbols::functions(object, |name| entry_named(name).is_some());
    if functions.is_empty() {
        return None;
    }
    fault_point!();
    let hooked = hook(object, &functions);
    Some(Prepared { hooked, object: object.clone(), shows })
}

/// What can be hooked, or why nothing can be.
#[derive(Debug)]
pub(crate) struct Prepared {
    hooked: Result<HookedObject, &'static str>,
    object: LoadedObject,
    /// Calls from elsewhere arrive in any case.
    shows: bool,
}

impl Prepared {
    /// # Safety
    /// No thread is at the start of one of the object's functions.
    pub(crate) unsafe fn install(&mut self) {
        if let Ok(hooked) = &mut self.hooked
            // SAFETY: each stand-in has the arguments of the function of its name, and is told the
            // address behind its hook; the caller guarantees that none is running.
            && let Err(reason) = unsafe { hooked.hooks.install() }
        {
            self.hooked = Err(reason);
        }
        fault_point!();
    }

    /// The hooks must not be installed any more.
    pub(crate) fn give_up(&mut self) {
        self.hooked = Err("it may have been in use before ggprof could look at it");
    }

    /// Registers the hooks, or says why there are none.
    pub(crate) fn conclude(self) {
        match self.hooked {
            Ok(hooked) => hooked.remember(),
            Err(reason) if self.shows && !self.object.name.is_empty() => {
                let _ = REFUSED.set((self.object.name.clone(), reason));
            }
            Err(reason) => quiet_log::say(&[
                self.object.name.to_bytes(),
                if self.object.name.is_empty() { b"this program" } else { b"" },
                b" has ggml linked into it, which cannot be recorded: ",
                reason.as_bytes(),
            ]),
        }
    }
}

/// Whether the object's calls of its own ggml are bound to `entry`.
fn calls_by_name(object: &LoadedObject) -> bool {
    let mut by_name = false;
    // libllama's functions are called by name where ggml's are not: by programs.
    let is_ggmls = |name: &[u8]| name.starts_with(b"ggml_") && entry_named(name).is_some();
    got::for_each(object, |slot| by_name |= is_ggmls(slot.name.to_bytes()));
    by_name
}

fn hook(object: &LoadedObject, found: &[Function]) -> Result<HookedObject, &'static str> {
    let mut hooks = InlineHooks::new(object)?;
    let mut functions = Vec::new();
    let mut refused = "";
    for function in found {
        let Some(entry) = entry_named(&function.name) else { continue };
        let stand_in = StandIn::Function(entry.at_entry as *const () as usize);
        match hooks.prepare(&FunctionToHook { function, stand_in }) {
            Ok(_) => functions.push(entry.symbol),
            Err(reason) => refused = reason,
        }
    }
    if functions.is_empty() {
        return Err(refused);
    }
    Ok(HookedObject { object: object.clone(), functions, hooks })
}

fn entry_named(name: &[u8]) -> Option<&'static Entry> {
    entry::all().find(|entry| entry.symbol.to_bytes() == name)
}
