//! A program or library that has ggml linked into itself may call ggml's functions
//! directly: it hides them, or was linked with `-Bsymbolic`. Then the dynamic linker
//! binds nothing, and no call would ever arrive at `entry`. If it kept its symbols, the
//! entry points are hooked where they are: those of the program and of what it links
//! before `main`, those of a library that is opened later before it is used (`opened`).

use std::ffi::CStr;

use super::entry::{self, Entry};
use super::library::is_gone;
use crate::ffi::api::Scope;
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::patch::got;
use crate::patch::inline::{Hook, InlineHooks, Wanted};
use crate::patch::loaded_object::{LoadedObject, Place};
use crate::patch::symbols::{self, Function};
use crate::quiet_log;

/// What every program that computes with ggml calls, one way or another; a quick
/// look for their names keeps all other programs from paying more.
pub(super) const SIGNS: [&CStr; 2] = [c"ggml_backend_sched_new", c"ggml_backend_graph_compute"];

/// A program or library with hooks at its own ggml's entry points.
#[derive(Debug)]
struct Hooked {
    object: LoadedObject,
    functions: Vec<&'static CStr>,
    hooks: InlineHooks,
}

static HOOKED: Ranked<{ rank::LINKED_IN }, Vec<Hooked>> = Ranked::new(Vec::new());

/// For the length of a fork.
pub(crate) fn lock_of_all() -> &'static dyn HeldAtFork {
    &HOOKED
}

/// Hooks for an object's own ggml, if it calls one directly. They are not in yet.
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
    let hooked = hook(object, &functions);
    Some(Prepared { hooked, object: object.clone(), shows })
}

/// What can be hooked, or why nothing can be.
#[derive(Debug)]
pub(crate) struct Prepared {
    hooked: Result<Hooked, &'static str>,
    object: LoadedObject,
    /// Calls from elsewhere arrive in any case.
    shows: bool,
}

impl Prepared {
    /// # Safety
    /// No thread is at the start of one of the object's functions.
    pub(crate) unsafe fn install(&mut self) {
        if let Ok(hooked) = &mut self.hooked
            // SAFETY: each shim stands for the function of its name and is told the way past its
            // hook; that none is running, the caller guarantees.
            && let Err(reason) = unsafe { hooked.hooks.install() }
        {
            self.hooked = Err(reason);
        }
    }

    /// They may not be installed any more.
    pub(crate) fn give_up(&mut self) {
        self.hooked = Err("it may have been in use before it could be looked at");
    }

    /// Keeps the hooks in mind, or says why there are none.
    pub(crate) fn conclude(self) {
        match self.hooked {
            Ok(hooked) => HOOKED.lock().push(hooked),
            Err(_) if self.shows && !self.object.name.is_empty() => {}
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
    got::for_each(object, |slot| by_name |= entry_named(slot.name.to_bytes()).is_some());
    by_name
}

fn hook(object: &LoadedObject, found: &[Function]) -> Result<Hooked, &'static str> {
    let mut hooks = InlineHooks::new(object)?;
    let mut functions = Vec::new();
    let mut refused = "";
    for function in found {
        let Some(entry) = entry_named(&function.name) else { continue };
        let hook = Hook::Function(entry.shim as *const () as usize);
        match hooks.prepare(&Wanted { function, hook }) {
            Ok(_) => functions.push(entry.symbol),
            Err(reason) => refused = reason,
        }
    }
    if functions.is_empty() {
        return Err(refused);
    }
    Ok(Hooked { object: object.clone(), functions, hooks })
}

fn entry_named(name: &[u8]) -> Option<&'static Entry> {
    entry::all().find(|entry| entry.symbol.to_bytes() == name)
}

/// Forgets the hooks of libraries that were closed, even if they were opened again at
/// the same place, and gives their places.
pub(crate) fn forget_closed() -> Vec<Place> {
    let all = || HOOKED.lock();
    let known: Vec<Place> = all().iter().map(|hooked| hooked.object.place()).collect();
    // Those that are there still stay there while their code is looked at.
    let there: Vec<(Place, Scope)> = known
        .into_iter()
        .filter_map(|place| Scope::of(&place.0).map(|held| (place, held)))
        .filter(|(place, _)| !is_gone(place))
        .collect();
    let mut closed = Vec::new();
    all().retain(|hooked| {
        let place = hooked.object.place();
        let stays =
            there.iter().any(|(there, _)| *there == place) && hooked.hooks.are_in(&hooked.object);
        if !stays {
            closed.push(place);
        }
        stays
    });
    closed
}

fn search<R>(wanted: impl FnMut(&Hooked) -> Option<R>) -> Option<R> {
    HOOKED.lock().iter().find_map(wanted)
}

/// Whether a function is of a ggml that is hooked where it is linked in.
pub(crate) fn holds(function: usize) -> bool {
    search(|hooked| hooked.object.holds(function).then_some(())).is_some()
}

/// Whether calls of a function inside the object arrive at us.
pub(crate) fn is_hooked(object: &LoadedObject, symbol: &CStr) -> bool {
    let is_in = |hooked: &Hooked| {
        let is_this = hooked.object.place() == object.place();
        (is_this && hooked.functions.contains(&symbol)).then_some(())
    };
    search(is_in).is_some()
}
