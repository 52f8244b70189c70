//! Children that the program forks while it is recorded, as servers fork their workers once a
//! model is loaded. A child has all of our memory, but of our threads only the one that forked,
//! and the parent's recording is the parent's.
//!
//! So our locks are held while the process forks (`lock`): the child finds what they protect
//! whole, and them free. When it first uses ggml it makes a recording of its own
//! (`recorder::current`). A child that came while a lock could not be had, while another thread was
//! inside the loader (`ffi::loader`), out of the middle of a graph, or by a system call that no
//! handler hears of, is not recorded; it only counts itself in the parent's recording.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock;
use crate::devices;
use crate::hooks::{device_nodes, library};
use crate::lock::{HeldAtFork, rank};
use crate::observe::this_thread::ThisThread;
use crate::observe::{backends, buffers, instance, schedulers, ticking};
use crate::patch::{got, inline, linked_in};
use crate::recorder::current;

/// Nobody holds one of our locks for so long, unless it waits for this very thread.
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

/// In the order in which they are taken everywhere. The first is the one without which nobody
/// makes a recorder: the others are asked for when it is held.
fn locks() -> impl Iterator<Item = &'static dyn HeldAtFork> {
    let others = std::iter::once_with(other_locks).flatten();
    std::iter::once(current::lock_of_all()).chain(others)
}

fn other_locks() -> impl Iterator<Item = &'static dyn HeldAtFork> {
    (0..rank::COUNT).flat_map(|rank| unsorted_locks().filter(move |lock| lock.rank() == rank))
}

/// Whoever uses a device has more of them: its children are not recorded.
fn unsorted_locks() -> impl Iterator<Item = &'static dyn HeldAtFork> {
    let [interner, definitions] = current::locks_of_recorder();
    let all = [
        Some(backends::lock_of_all()),
        Some(instance::lock_of_all()),
        Some(buffers::lock_of_all()),
        interner,
        definitions,
        Some(schedulers::lock_of_all()),
        Some(library::lock_of_all()),
        Some(device_nodes::lock_of_all()),
        Some(linked_in::lock_of_all()),
        Some(inline::lock_of_all()),
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

/// What devices did is out of reach in a child.
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
