//! Children that the program forks while it is recorded, as servers fork their workers once a model
//! is loaded. A child has all of the agent's memory, but only the thread that forked, and the
//! parent's recording belongs to the parent.
//!
//! So the agent holds its locks while the process forks (`lock`): in the child, what they protect
//! is consistent, and they are free. When the child first uses ggml, it makes its own recording
//! (`recorder::current`). Some children are not recorded and only count themselves in the parent's
//! recording: those that were forked while a lock could not be taken, while another thread was
//! inside the loader (`ffi::loader`), in the middle of a graph, or with a system call that runs no
//! fork handlers.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock;
use crate::devices;
use crate::hooks::{device_nodes, library};
use crate::lock::{HeldAtFork, rank};
use crate::observe::this_thread::ThisThread;
use crate::observe::{backends, buffers, built_batches, contexts, instance, schedulers, ticking};
use crate::patch::{got, inline, linked_in, standing};
use crate::recorder::current;

/// No thread holds one of our locks for so long, unless it waits for this very thread.
const PATIENCE_NS: u64 = 100_000_000;

/// Called before recording begins. (Before that there is nothing that a child could not have as
/// well.)
pub(crate) fn prepare() {
    static PREPARED: AtomicBool = AtomicBool::new(false);
    if PREPARED.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: registers functions that live as long as the agent, which is never closed.
    unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
}

/// In the order in which they are taken everywhere. The first one is needed to create a recorder,
/// so the others are looked up while it is held.
fn locks() -> impl Iterator<Item = &'static dyn HeldAtFork> {
    let others = std::iter::once_with(other_locks).flatten();
    std::iter::once(current::lock_of_all()).chain(others)
}

fn other_locks() -> impl Iterator<Item = &'static dyn HeldAtFork> {
    (0..rank::COUNT).flat_map(|rank| unsorted_locks().filter(move |lock| lock.rank() == rank))
}

/// Processes that use a device have more locks; their children are not recorded.
fn unsorted_locks() -> impl Iterator<Item = &'static dyn HeldAtFork> {
    let [interner, definitions] = current::locks_of_recorder();
    let all = [
        Some(backends::lock_of_all()),
        Some(instance::lock_of_all()),
        Some(buffers::lock_of_all()),
        interner,
        definitions,
        Some(schedulers::lock_of_all()),
        Some(contexts::lock_of_all()),
        Some(built_batches::lock_of_all()),
        Some(library::lock_of_all()),
        Some(device_nodes::lock_of_all()),
        Some(linked_in::lock_of_all()),
        Some(inline::lock_of_all()),
        Some(standing::lock_of_all()),
        Some(ticking::lock_of_all()),
        Some(got::lock_of_all()),
    ];
    all.into_iter().chain(devices::KNOWN.iter().flat_map(|api| api.locks())).flatten()
}

/// A handler of the program's signals may fork in the middle of our code, where this thread has
/// some of the locks itself.
extern "C" fn before() {
    ThisThread::with(|this| this.has_all_locks.set(!this.inside.get() && hold_all()));
}

extern "C" fn after_in_parent() {
    ThisThread::with(let_go_of_all);
}

extern "C" fn after_in_child() {
    ThisThread::with(|this| {
        let can_go_on = this.has_all_locks.get() && !this.is_in_run();
        let_go_of_all(this);
        this.become_child();
        current::become_child(can_go_on && !devices_are_in_use());
    });
}

/// A child cannot read what devices did.
fn devices_are_in_use() -> bool {
    devices::KNOWN.iter().any(|api| api.is_in_use())
}

/// All of them or none.
fn hold_all() -> bool {
    let start = clock::nanoseconds(libc::CLOCK_MONOTONIC);
    let is_patient = || clock::nanoseconds(libc::CLOCK_MONOTONIC) - start < PATIENCE_NS;
    for (held, lock) in locks().enumerate() {
        while !lock.try_hold() {
            if !is_patient() {
                let_go_of_first(held);
                return false;
            }
            // SAFETY: a system call without arguments.
            unsafe { libc::sched_yield() };
        }
    }
    true
}

fn let_go_of_all(this: &ThisThread) {
    if this.has_all_locks.replace(false) {
        let_go_of_first(usize::MAX);
    }
}

fn let_go_of_first(held: usize) {
    for lock in locks().take(held) {
        // SAFETY: this thread holds it: `hold_all` took them in the same order.
        unsafe { lock.let_go() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_held_in_the_order_of_their_ranks_those_of_devices_among_them() {
        let ranks: Vec<u8> = locks().map(|lock| lock.rank()).collect();
        assert!(ranks.is_sorted(), "{ranks:?}");
        let of_devices = devices::KNOWN.iter().flat_map(|api| api.locks()).flatten();
        of_devices.for_each(|lock| assert!(ranks.contains(&lock.rank())));
    }
}
