//! Children that the program forks while it is recorded, as servers fork their workers once a model
//! is loaded. A child has all of the agent's memory, but only the thread that forked, and the
//! parent's recording belongs to the parent.
//!
//! So the agent holds its locks while the process forks (`lock`): in the child, what they protect
//! is consistent, and they are free. When the child first uses ggml, it makes its own recording
//! (`recorder::current`). Some children are not recorded and only count themselves in the parent's
//! recording: those that were forked while a lock could not be taken, while another thread was
//! inside the loader (`ffi::loader`), in the middle of a graph, or with a system call that runs no
//! fork handlers. Where a lock could not be taken, the agent does nothing in the child (`lock`).

use std::sync::atomic::{AtomicBool, Ordering};

use crate::c_library;
use crate::clock;
use crate::devices;
use crate::fault::fault_point;
use crate::hooks::{device_nodes, library};
use crate::lock::{HeldAtFork, rank};
use crate::observe::this_thread::ThisThread;
use crate::observe::{backends, buffers, built_batches, contexts, instance, schedulers, ticking};
use crate::observe::{device_api, fail_open};
use crate::patch::{got, inline, linked_in, standing};
use crate::recorder::{children, current};

/// No thread holds one of our locks for so long, unless it waits for this very thread.
const PATIENCE_NS: u64 = 100_000_000;

/// Called before the process is armed: from then on, hooks take locks.
#[unsafe(link_section = ".text.asleep")]
pub(crate) fn prepare() {
    #[unsafe(link_section = ".data.asleep")]
    static PREPARED: AtomicBool = AtomicBool::new(false);
    if PREPARED.swap(true, Ordering::Relaxed) {
        return;
    }
    c_library::at_fork(before, after_in_parent, after_in_child);
}

/// In the order in which they are taken everywhere, each with a number of its own.
fn all_locks() -> impl Iterator<Item = (usize, &'static dyn HeldAtFork)> {
    (0..=rank::THREAD_KEY)
        .flat_map(|rank| unsorted_locks().filter(move |(_, lock)| lock.rank() == rank))
}

/// Without the locks that only a process with a device has: its children are not recorded.
fn unsorted_locks() -> impl Iterator<Item = (usize, &'static dyn HeldAtFork)> {
    let [interner, definitions] = current::locks_of_recorder();
    let all = [
        Some(current::fork_lock()),
        Some(backends::fork_lock()),
        Some(instance::fork_lock()),
        Some(buffers::fork_lock()),
        interner,
        definitions,
        Some(schedulers::fork_lock()),
        Some(contexts::fork_lock()),
        Some(built_batches::fork_lock()),
        Some(library::fork_lock()),
        Some(device_nodes::fork_lock()),
        Some(linked_in::fork_lock()),
        Some(inline::fork_lock()),
        Some(standing::fork_lock()),
        Some(ticking::fork_lock()),
        Some(got::fork_lock()),
    ];
    let of_devices = devices::APIS.iter().flat_map(|api| device_api::fork_locks(*api));
    let all = all.into_iter().chain(of_devices.map(Some));
    all.enumerate().filter_map(|(number, lock)| Some((number, lock?)))
}

/// A signal handler of the program may fork in the middle of our code, where this thread itself
/// holds some of the locks.
extern "C" fn before() {
    fail_open::in_any_case((), || {
        ThisThread::with(|this| {
            this.locks_held.set(0);
            this.has_all_locks.set(false);
            fault_point!();
            this.has_all_locks.set(!this.inside.get() && hold_all(this));
            fault_point!();
        });
    });
}

extern "C" fn after_in_parent() {
    fail_open::in_any_case((), || {
        ThisThread::with(|this| {
            let _let_go = LetGo(this);
            fault_point!();
        });
    });
}

extern "C" fn after_in_child() {
    #[cfg(feature = "inject-faults")]
    crate::fault::begin_in_child();
    current::forget_faults();
    let is_consistent = fail_open::in_any_case(false, || {
        ThisThread::with(|this| {
            let let_go = LetGo(this);
            fault_point!();
            let can_go_on = !this.is_in_run() && !devices_are_in_use();
            drop(let_go);
            fault_point!();
            this.become_child();
            children::become_child(this.has_all_locks.get(), can_go_on);
        });
        true
    });
    if !is_consistent {
        children::be_lost();
    }
}

/// A child cannot read what devices did.
fn devices_are_in_use() -> bool {
    devices::APIS.iter().any(|api| api.is_in_use())
}

/// Takes all locks; whether it got every one. If another thread keeps one of them, this takes the others
/// all the same, so that they are free in the child: the program needs some of them to find its functions.
fn hold_all(this: &ThisThread) -> bool {
    let mut has_all = true;
    for (number, lock) in all_locks() {
        // Which locks a recorder has is certain only while no other recorder can be made.
        let is_known = has_all || lock.rank() != rank::INTERNER && lock.rank() != rank::DEFINITIONS;
        if is_known && hold(lock) {
            this.locks_held.set(this.locks_held.get() | 1 << number);
        } else {
            has_all = false;
        }
    }
    has_all
}

fn hold(lock: &'static dyn HeldAtFork) -> bool {
    let start = clock::nanoseconds(libc::CLOCK_MONOTONIC);
    while !lock.try_hold() {
        if clock::nanoseconds(libc::CLOCK_MONOTONIC) - start >= PATIENCE_NS {
            return false;
        }
        // SAFETY: a system call without arguments.
        unsafe { libc::sched_yield() };
    }
    true
}

/// Lets go of the locks that are held during a fork, even after a fault: no thread could go on without them.
struct LetGo<'a>(&'a ThisThread);

impl Drop for LetGo<'_> {
    fn drop(&mut self) {
        let held = self.0.locks_held.replace(0);
        for (_, lock) in all_locks().filter(|(number, _)| held >> number & 1 == 1) {
            // SAFETY: this thread holds it: `hold_all` noted that.
            unsafe { lock.let_go() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_held_in_the_order_of_their_ranks_those_of_devices_among_them() {
        let ranks: Vec<u8> = all_locks().map(|(_, lock)| lock.rank()).collect();
        assert!(ranks.is_sorted(), "{ranks:?}");
        let of_devices = devices::APIS.iter().flat_map(|api| device_api::fork_locks(*api));
        of_devices.for_each(|lock| assert!(ranks.contains(&lock.rank())));
        assert!(all_locks().all(|(number, _)| number < u64::BITS as usize));
    }
}
