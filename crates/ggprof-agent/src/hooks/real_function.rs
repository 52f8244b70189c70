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
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use crate::c_library;
use crate::fault::fault_point;
use crate::ffi::which_ggml::{find_anywhere, is_own};
use crate::lock;
use crate::observe::fail_open::in_any_case;
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

/// Objects from which one function is called in one process: a handful.
const REMEMBERED: usize = 16;
/// Code that belongs to no object was made at run time, and its callers are remembered by the page.
const PAGE: usize = 4096;
/// In place of an address, until the rest is filled in. No caller has this one.
const BEING_FILLED: usize = usize::MAX;

/// An entry point we stand in for. Without its name, so that the loader has nothing to fill in
/// here in processes without ggml.
#[derive(Debug)]
pub(crate) struct RealFunction {
    remembered: [Callers; REMEMBERED],
    /// How often callers had to make room for others.
    replaced: AtomicUsize,
    /// The loader's count of unloads when the callers were remembered.
    unloads: AtomicU64,
}

/// All code that reaches the same function: that of one object.
#[derive(Debug)]
struct Callers {
    /// The range of return addresses, from the first (0: no range) to the one behind the last. For a tail
    /// call out of a function that the agent called: the address of that function, marked.
    start: AtomicUsize,
    end: AtomicUsize,
    function: AtomicUsize,
}

impl Callers {
    const fn none() -> Self {
        Callers {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            function: AtomicUsize::new(0),
        }
    }

    /// The function that a call from `site` reaches, if the site is in this range.
    #[inline(always)]
    fn reach(&self, site: usize) -> Option<usize> {
        let start = self.start.load(Ordering::Acquire);
        if start == 0 || site < start || site >= self.end.load(Ordering::Relaxed) {
            return None;
        }
        let function = self.function.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        // Others may have taken the place meanwhile.
        (self.start.load(Ordering::Relaxed) == start && function != 0).then_some(function)
    }

    /// Empties the entry. One that is being filled belongs to the thread that fills it, and this thread
    /// looks afterwards whether something was unloaded (`find_and_remember`).
    fn forget(&self) {
        let start = self.start.load(Ordering::Relaxed);
        if start != BEING_FILLED {
            let order = Ordering::AcqRel;
            // Fails if another thread has emptied or replaced it: then it is not the one to be forgotten.
            _ = self.start.compare_exchange(start, 0, order, Ordering::Relaxed);
        }
    }

    /// Replaces the entry that began at `before`; false if another thread replaced it first.
    fn replace(&self, before: usize, callers: &Range<usize>, function: usize) -> bool {
        let order = Ordering::AcqRel;
        if before == BEING_FILLED
            || self.start.compare_exchange(before, BEING_FILLED, order, Ordering::Relaxed).is_err()
        {
            return false;
        }
        fence(Ordering::Release);
        self.end.store(callers.end, Ordering::Relaxed);
        self.function.store(function, Ordering::Relaxed);
        self.start.store(callers.start, Ordering::Release);
        true
    }
}

impl RealFunction {
    pub(crate) const fn new() -> Self {
        RealFunction {
            remembered: [const { Callers::none() }; REMEMBERED],
            replaced: AtomicUsize::new(0),
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

    /// The fast way, which changes nothing: most calls come from the same few places.
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
        let function = in_any_case(0, || self.remembered_or_found(symbol, site));
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
            self.remembered.iter().for_each(Callers::forget);
        }
    }

    #[inline(always)]
    fn recall(&self, site: usize) -> Option<usize> {
        self.remembered.iter().find_map(|callers| callers.reach(site))
    }

    #[cold]
    fn find_and_remember(&self, symbol: &CStr, site: usize) -> usize {
        fault_point!();
        let unloads = loaded_object::unloads();
        let caller = LoadedObject::containing(site & !BEHIND_OURS);
        let function = inline::way_past(find_from(caller.as_ref(), symbol));
        fault_point!();
        let mark = site & BEHIND_OURS;
        let page = (site & !mark) / PAGE * PAGE;
        let bounds = caller.and_then(|object| object.bounds()).unwrap_or(page..page + PAGE);
        self.remember(bounds.start | mark..bounds.end | mark, function);
        if loaded_object::unloads() != unloads {
            self.remembered.iter().for_each(Callers::forget);
        }
        function
    }

    fn remember(&self, callers: Range<usize>, function: usize) {
        if self.remembered.iter().any(|place| place.replace(0, &callers, function)) {
            return;
        }
        // Code that is made at run time comes and goes.
        let number = self.replaced.fetch_add(1, Ordering::Relaxed) % REMEMBERED;
        let place = &self.remembered[number];
        place.replace(place.start.load(Ordering::Relaxed), &callers, function);
    }
}

/// The key under which a call site is remembered.
#[inline(always)]
fn site_of(return_address: usize) -> usize {
    if is_ours(return_address) {
        // The same wrapper serves every copy of ggml; the real function that it called last tells
        // which copy this is.
        ThisThread::with(|this| this.last_real.get()) | BEHIND_OURS
    } else {
        return_address
    }
}

#[cold]
fn found_otherwise(symbol: &CStr, return_address: usize) -> usize {
    let caller = || LoadedObject::containing(return_address);
    let find = || inline::way_past(find_from(caller().as_ref(), symbol));
    let function = in_any_case(0, find);
    if function != 0 { function } else { next(symbol) }
}

/// The symbol as code of an object would see it, never our own.
fn find_from(caller: Option<&LoadedObject>, symbol: &CStr) -> usize {
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
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) as usize };
    c_library::forget_loader_error(found == 0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(function: &RealFunction) -> usize {
        let places = function.remembered.iter();
        places.filter(|place| place.start.load(Ordering::Relaxed) != 0).count()
    }

    #[test]
    fn all_calls_from_one_object_are_remembered_as_one() {
        static REAL: RealFunction = RealFunction::new();
        let somewhere = libc::qsort as *const () as usize;
        let found: Vec<usize> =
            (0..100).map(|at| REAL.for_caller(c"getpid", somewhere + at)).collect();
        assert!(found[0] != 0 && found.iter().all(|function| *function == found[0]));
        assert_eq!(taken(&REAL), 1);
        assert!((0..100).all(|at| REAL.recall(somewhere + at) == Some(found[0])));
    }

    #[test]
    fn a_closed_library_leaves_a_place_to_the_thread_that_fills_it() {
        static REAL: RealFunction = RealFunction::new();
        REAL.remember(16..32, 1);
        REAL.remembered[1].start.store(BEING_FILLED, Ordering::Relaxed);
        REAL.unloads.store(u64::MAX, Ordering::Relaxed);
        REAL.forget_after_unload();
        let starts = [0, 1].map(|place| REAL.remembered[place].start.load(Ordering::Relaxed));
        assert_eq!(starts, [0, BEING_FILLED]);
    }

    #[test]
    fn callers_of_no_object_are_remembered_by_the_page_and_make_room() {
        static REAL: RealFunction = RealFunction::new();
        let nowhere = |page: usize| 16 + page * PAGE;
        for page in 1..=40 {
            let found = REAL.for_caller(c"getpid", nowhere(page));
            assert_eq!(REAL.recall(nowhere(page) + 100), Some(found), "the newest is there");
        }
        assert_eq!(taken(&REAL), REMEMBERED);
        assert_eq!(REAL.recall(nowhere(1)), None, "one of the oldest");
    }
}
