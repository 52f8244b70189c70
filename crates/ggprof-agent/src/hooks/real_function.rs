//! Which function the caller would have reached without the agent.
//!
//! It is looked up in the scope of the library from which the call came: `RTLD_NEXT` does not see
//! libraries opened with `RTLD_LOCAL`, and two copies of ggml must each reach their own functions.
//! There are two special cases. A tail call of ggml seems to come from the agent's own wrapper;
//! then the answer is in the library of the real function that the wrapper called. A call that
//! another profiler passes on comes from a library that exports the same names and is not ggml;
//! then the answer is behind the agent in the order of symbols, or the two would call each other
//! for ever.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::fault::fault_point;
use crate::ffi::which_ggml::{find_anywhere, is_own};
use crate::lock;
use crate::observe::fail_open::contained;
use crate::observe::this_thread::ThisThread;
use crate::patch::inline;
use crate::patch::loaded_object::{self, LoadedObject, is_ours};
use crate::patch::scope::Scope;

/// Marks what `for_caller` is given for a call that arrived at the entry of a hooked
/// function: not a return address, but the way past the hook. No address of a program
/// has this bit.
pub(super) const PAST_A_HOOK: usize = 1 << 62;
/// Marks a site that is a function of ggml's; no address of a program has this bit.
const BEHIND_OURS: usize = 1 << 63;

/// Call sites of one function in one process: a handful.
const REMEMBERED: usize = 16;

/// An entry point we stand in for. Without its name, so that the loader has nothing to fill in
/// here in processes without ggml.
#[derive(Debug)]
pub(crate) struct RealFunction {
    remembered: [CallSite; REMEMBERED],
    /// The loader's count of unloads when the sites were remembered.
    unloads: AtomicU64,
}

#[derive(Debug)]
struct CallSite {
    /// Where the call returns to; for a tail call out of a function that we called, that
    /// function, marked.
    address: AtomicUsize,
    function: AtomicUsize,
}

impl CallSite {
    const fn none() -> Self {
        CallSite { address: AtomicUsize::new(0), function: AtomicUsize::new(0) }
    }
}

impl RealFunction {
    pub(crate) const fn new() -> Self {
        RealFunction {
            remembered: [const { CallSite::none() }; REMEMBERED],
            unloads: AtomicU64::new(0),
        }
    }

    /// The real function of this name for a call that returns to `return_address`. Zero
    /// only if the loader knows no such function any more.
    pub(crate) fn for_caller(&self, symbol: &CStr, return_address: usize) -> usize {
        let site = site_of(return_address);
        match self.recall_at_once(site) {
            Some(function) => function,
            None => self.for_new_site(symbol, return_address, site),
        }
    }

    /// Without any change, as most calls come from a few places again and again.
    #[inline(always)]
    fn recall_at_once(&self, site: usize) -> Option<usize> {
        if self.unloads.load(Ordering::Acquire) != loaded_object::unloads() {
            return None;
        }
        let function = self.recall(site)?;
        ThisThread::with(|this| this.last_real.set(function));
        Some(function)
    }

    #[cold]
    fn for_new_site(&self, symbol: &CStr, return_address: usize, site: usize) -> usize {
        if return_address & PAST_A_HOOK != 0 {
            return return_address & !PAST_A_HOOK;
        }
        // Whatever fails in the agent, the program must get its function.
        let function = contained(0, || self.remembered_or_found(symbol, site));
        if function != 0 { function } else { found_otherwise(symbol, return_address) }
    }

    fn remembered_or_found(&self, symbol: &CStr, site: usize) -> usize {
        self.forget_after_unload();
        let function = match self.recall(site) {
            Some(function) => function,
            None => self.find_and_remember(symbol, site),
        };
        ThisThread::with(|this| this.last_real.set(function));
        function
    }

    #[cold]
    fn forget_after_unload(&self) {
        let unloads = loaded_object::unloads();
        if self.unloads.swap(unloads, Ordering::AcqRel) != unloads {
            for site in &self.remembered {
                site.address.store(0, Ordering::Release);
            }
        }
    }

    #[inline(always)]
    fn recall(&self, site: usize) -> Option<usize> {
        let known =
            self.remembered.iter().find(|known| known.address.load(Ordering::Acquire) == site)?;
        Some(known.function.load(Ordering::Relaxed)).filter(|&function| function != 0)
    }

    #[cold]
    fn find_and_remember(&self, symbol: &CStr, site: usize) -> usize {
        fault_point!();
        let function = inline::way_past(find_from(site & !BEHIND_OURS, symbol));
        fault_point!();
        let free = self.remembered.iter().find(|place| {
            let order = Ordering::AcqRel;
            // A mark no return address has, until the function is filled in.
            place.address.compare_exchange(0, usize::MAX, order, Ordering::Relaxed).is_ok()
        });
        if let Some(place) = free {
            place.function.store(function, Ordering::Relaxed);
            place.address.store(site, Ordering::Release);
        }
        function
    }
}

/// What a call is remembered by.
#[inline(always)]
fn site_of(return_address: usize) -> usize {
    if is_ours(return_address) {
        // The same wrapper serves every copy of ggml; the function it called tells.
        ThisThread::with(|this| this.last_real.get()) | BEHIND_OURS
    } else {
        return_address
    }
}

#[cold]
fn found_otherwise(symbol: &CStr, return_address: usize) -> usize {
    let find = || inline::way_past(find_from(return_address, symbol));
    let function = contained(0, find);
    if function != 0 { function } else { next(symbol) }
}

/// The symbol as code at `address` would see it, never our own.
fn find_from(address: usize, symbol: &CStr) -> usize {
    let caller = LoadedObject::containing(address);
    let scope = caller.and_then(|object| Scope::of(&object.name));
    let found = scope.map_or(0, |scope| scope.find(symbol));
    if found != 0 && !is_ours(found) && is_own(symbol, found) {
        return found;
    }
    let usable = |address: &usize| *address != 0 && !is_ours(*address);
    let elsewhere =
        Some(next(symbol)).filter(usable).or_else(|| Some(find_anywhere(symbol)).filter(usable));
    // Last of all what the caller sees, even if it does not look like a ggml: a program
    // that gets no function at all is worse off.
    elsewhere.or(Some(found).filter(usable)).unwrap_or(0)
}

/// The symbol after the agent's in the global scope.
fn next(symbol: &CStr) -> usize {
    lock::before_asking_the_loader();
    // SAFETY: a look-up by a C string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) as usize }
}
