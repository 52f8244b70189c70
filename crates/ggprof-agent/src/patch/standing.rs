//! Changes of code in a program that was running when the agent began. Any of its threads may be in the very
//! instructions, so the agent does not change them. For `ggprof attach` it collects what is to be changed, and
//! `ggprof attach` does it while every thread stands. A program that opens libggml-profiler has nobody who
//! could do that.
//!
//! Code that was there at that time is changed in no other way later, unless there is one thread only: the
//! agent's own stands in none of these functions. What is loaded afterwards is hooked before its first use, as
//! in any program.

use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use ggprof_spool::attaching::Change;

use super::loaded_object::{self, LoadedObject, Place};
use super::scope;
use crate::fault::fault_point;
use crate::lock::{HeldAtFork, Ranked, rank};

/// The thread that collects changes; 0 for none.
static COLLECTING: AtomicI32 = AtomicI32::new(0);
/// All changes whose hooks still exist.
static COLLECTED: Ranked<{ rank::STANDING }, Vec<Change>> = Ranked::new(Vec::new());
/// What was loaded when the agent began in a program that ran already.
static RUNNING: OnceLock<Vec<Place>> = OnceLock::new();

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
    &COLLECTED
}

/// Runs `prepare` on this thread, and collects the changes of code that it asks for.
pub(crate) fn collect(prepare: impl FnOnce()) -> Vec<Change> {
    note_running();
    COLLECTING.store(this_thread(), Ordering::Release);
    let collecting = Collecting;
    fault_point!();
    prepare();
    drop(collecting);
    not_made_yet()
}

/// The program may be computing with all that is loaded now.
pub(crate) fn note_running() {
    RUNNING.get_or_init(|| loaded_object::all().iter().map(LoadedObject::place).collect());
}

/// Changes that were collected and are not in: whoever was to make them may have been killed before.
pub(crate) fn not_made_yet() -> Vec<Change> {
    let there = scope::all_held();
    let is_open = |change: &&Change| {
        let at = change.at as usize;
        let is_there = there.iter().any(|(object, _)| object.holds_code(at));
        // SAFETY: code of an object that is kept loaded; it is readable, and far longer than a change.
        is_there
            && unsafe { std::slice::from_raw_parts(at as *const u8, change.before().len()) }
                == change.before()
    };
    COLLECTED.lock().iter().filter(is_open).copied().collect()
}

/// Drops changes whose hooks are gone.
pub(super) fn forget(at: impl Iterator<Item = usize>) {
    let at: Vec<usize> = at.collect();
    COLLECTED.lock().retain(|change| !at.contains(&(change.at as usize)));
}

/// This thread collects changes until this is dropped, even by a fault.
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

/// Whether a thread may be executing the object's code, so that it must not be changed from here.
pub(super) fn may_be_running(object: &LoadedObject) -> bool {
    let place = || object.place();
    let was_there = || RUNNING.get().is_some_and(|running| running.contains(&place()));
    !is_collecting() && was_there() && !is_only_thread()
}

/// False also where the system does not tell. The directory has two links, and one for each thread.
fn is_only_thread() -> bool {
    std::fs::metadata("/proc/self/task").is_ok_and(|threads| threads.nlink() == 3)
}

/// `changes` are made as soon as every thread stands, all of them or none.
pub(super) fn add(changes: impl Iterator<Item = Change>) {
    COLLECTED.lock().extend(changes);
    fault_point!();
}

fn this_thread() -> i32 {
    // SAFETY: a system call without arguments. (glibc has a function for it only since 2.30.)
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}
