//! Changes of code in a program that was running when `ggprof attach` loaded the agent. Any of its
//! threads may be in the very instructions, so the agent does not change them: it collects what is to
//! be changed, and `ggprof attach` does it while every thread stands.
//!
//! Code that was there at that time is changed in no other way later. What is loaded afterwards is
//! hooked before its first use, as in any program.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use ggprof_spool::attaching::Change;

use super::loaded_object::{self, LoadedObject, Place};
use crate::lock::{HeldAtFork, Ranked, rank};

/// The thread that collects changes; 0 for none.
static COLLECTING: AtomicI32 = AtomicI32::new(0);
static COLLECTED: Ranked<{ rank::STANDING }, Vec<Change>> = Ranked::new(Vec::new());
/// What was loaded then.
static RUNNING: OnceLock<Vec<Place>> = OnceLock::new();

/// For holding it during a fork.
pub(crate) fn lock_of_all() -> &'static dyn HeldAtFork {
    &COLLECTED
}

/// What the code of this process is to be changed to by `prepare`, which runs on this thread.
pub(crate) fn collect(prepare: impl FnOnce()) -> Vec<Change> {
    RUNNING.get_or_init(|| loaded_object::all().iter().map(LoadedObject::place).collect());
    COLLECTING.store(this_thread(), Ordering::Release);
    let collecting = Collecting;
    prepare();
    drop(collecting);
    std::mem::take(&mut *COLLECTED.lock())
}

/// Until this is dropped, also by a fault in between.
struct Collecting;

impl Drop for Collecting {
    fn drop(&mut self) {
        COLLECTING.store(0, Ordering::Release);
    }
}

pub(super) fn is_collecting() -> bool {
    let collecting = COLLECTING.load(Ordering::Acquire);
    collecting != 0 && collecting == this_thread()
}

/// Whether somebody may be executing the object's code, which is not to be changed here.
pub(super) fn may_be_running(object: &LoadedObject) -> bool {
    let place = || object.place();
    RUNNING.get().is_some_and(|running| !is_collecting() && running.contains(&place()))
}

/// `changes` are made as soon as every thread stands, all of them or none.
pub(super) fn add(changes: impl Iterator<Item = Change>) {
    COLLECTED.lock().extend(changes);
}

fn this_thread() -> i32 {
    // SAFETY: a system call without arguments. (glibc has a function for it only since 2.30.)
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}
