//! What the agent keeps per thread. Nothing needs initialising or dropping, so reading it never
//! allocates and works until the very end of the thread.

use std::cell::Cell;

use ggprof_spool::layout::NONE;

use super::batches::BatchCall;
use super::begun::Head;
use super::built_batches::Built;
use super::experts::Choices;
use super::fail_open;
use super::instance::LastInstance;
use super::visits::Visits;
use crate::arch;
use crate::fault::fault_point;
use crate::lock::{Once, rank};
use crate::recorder::lane::HeldLane;
use crate::recorder::thread_log::ThreadLog;
use crate::recorder::{Recorder, current};

/// More than a graph has inputs.
const COPIED: usize = 16;

/// What every op needs comes first, in one cache line: the op before has used the cache for itself.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct ThisThread {
    /// The guard's re-entrancy mark.
    pub(crate) inside: Cell<bool>,
    pub(crate) log: Cell<Option<&'static ThreadLog>>,
    /// The choices of experts in the processor's split, null without (`observe::experts`).
    pub(crate) choices: Cell<*const Choices>,
    pub(crate) preferred_lane: Cell<usize>,
    /// What hooks have begun on this thread, and the last number for one (`observe::begun`).
    pub(super) begun: Cell<*mut Head>,
    last_begun: Cell<u64>,
    /// When this thread was last seen in a graph run.
    pub(super) last_seen: Cell<u64>,
    /// The graph run this thread is computing, 0 outside.
    pub(crate) run: Cell<u32>,
    pub(crate) splits_in_run: Cell<u32>,
    pub(crate) run_start: Cell<u64>,
    /// The number that its positions were written down with, 0 without (`observe::positions`).
    pub(crate) positions_call: Cell<u32>,
    /// The last tensors that were copied in that run: source and target (`observe::positions`).
    copied: [Cell<(usize, usize)>; COPIED],
    copies: Cell<usize>,
    /// The call of libllama that it is in, null outside (`observe::batches`).
    pub(crate) call: Cell<*const BatchCall>,
    /// The batch that it worked on last (`observe::built_batches`).
    pub(super) built: Cell<Option<&'static Built>>,
    /// The scheduler of that run, null without.
    pub(crate) scheduler: Cell<usize>,
    /// The device's split being computed, null without (`observe::visits`).
    pub(crate) visits: Cell<*mut Visits>,
    /// What is being copied by ggml's own call (`observe::copies`), and since when.
    pub(crate) copying: Cell<u8>,
    pub(crate) copy_start: Cell<u64>,
    /// Buffers that were made since the call that makes one now began (`observe::buffers`).
    pub(crate) buffers_made: Cell<u32>,
    /// Where the real function called last on this thread lives: see
    /// `hooks::real_function` on tail calls.
    pub(crate) last_real: Cell<usize>,
    /// Where the call that is being answered came from (`hooks::entry`).
    pub(crate) caller: Cell<usize>,
    /// The copy of ggml that was asked for last (`observe::instance`).
    pub(crate) instance: LastInstance,
    os_thread: Cell<u32>,
    /// What had been opened when this thread looked last (`hooks::opened`).
    pub(crate) looked_at: Cell<u32>,
    /// The locks that this thread holds during a fork, a bit for each, and whether these are all
    /// (`forking`).
    pub(crate) locks_held: Cell<u64>,
    pub(crate) has_all_locks: Cell<bool>,
}

// Zero bytes are a valid `ThisThread`.
arch::thread_memory!("ggprof_this_thread", fn of_this_thread() -> ThisThread);

/// Gives a log back when its thread ends.
static END_OF_THREAD: Once<{ rank::THREAD_KEY }, Option<libc::pthread_key_t>> = Once::new();

impl ThisThread {
    /// Offsets of these fields, which `hooks::barrier` reads. The log is null in a thread that has none.
    pub(crate) const INSIDE: usize = std::mem::offset_of!(ThisThread, inside);
    pub(crate) const LOG: usize = std::mem::offset_of!(ThisThread, log);
    /// The offset of the field that `hooks::entry` writes.
    pub(crate) const CALLER: usize = std::mem::offset_of!(ThisThread, caller);

    #[inline(always)]
    pub(crate) fn with<R>(work: impl FnOnce(&ThisThread) -> R) -> R {
        // SAFETY: this thread's own memory, zeroed when the thread began, which
        // is a valid value; cells keep it to this thread.
        work(unsafe { &*of_this_thread() })
    }

    pub(super) fn next_begun(&self) -> u64 {
        self.last_begun.set(self.last_begun.get() + 1);
        self.last_begun.get()
    }

    /// A tensor was copied to another one.
    #[inline]
    pub(crate) fn note_copy(&self, source: usize, target: usize) {
        let at = self.copies.get();
        self.copied[at % COPIED].set((source, target));
        self.copies.set(at.wrapping_add(1));
    }

    /// The tensor that this one was copied from in the graph run that is under way.
    pub(crate) fn copied_from(&self, target: usize) -> Option<usize> {
        let noted = self.copied.iter().map(Cell::get).take(self.copies.get());
        noted.filter(|(source, to)| *source != 0 && *to == target).map(|(source, _)| source).next()
    }

    pub(crate) fn forget_copies(&self) {
        self.copies.set(0);
    }

    pub(crate) fn os_thread(&self) -> u32 {
        if self.os_thread.get() == 0 {
            // SAFETY: a system call without arguments. (glibc has a function for it only since 2.30.)
            self.os_thread.set(unsafe { libc::syscall(libc::SYS_gettid) } as u32);
        }
        self.os_thread.get()
    }

    /// The right to write, preferably the lane used last.
    pub(crate) fn lane<'r>(&self, recorder: &'r Recorder) -> Option<HeldLane<'r>> {
        recorder.lane(self.preferred_lane.get(), self.run.get())
    }

    /// Does something with the right to write, where recording goes on.
    pub(crate) fn with_lane(&self, work: impl FnOnce(&HeldLane<'_>)) {
        let Some(recorder) = current::recording() else { return };
        if let Some(lane) = self.lane(recorder) {
            fault_point!();
            work(&lane);
        }
    }

    pub(crate) fn is_in_run(&self) -> bool {
        self.run.get() != NONE
    }

    /// Whether this thread is in the middle of an op, and not only of a graph. Then the op is one of the
    /// program's own functions, and may compute another graph.
    pub(crate) fn is_in_op(&self) -> bool {
        self.log.get().is_some_and(ThreadLog::is_in_op)
    }

    /// In a forked child, which has only this thread: it has another number than in the parent, and
    /// no log.
    pub(crate) fn become_child(&self) {
        self.os_thread.set(0);
        self.log.set(None);
        if let Some(Some(key)) = END_OF_THREAD.get() {
            // SAFETY: the key is valid. Without a value our destructor is not called.
            unsafe { libc::pthread_setspecific(*key, std::ptr::null()) };
        }
    }

    /// This thread's log, taken from the pool at its first op.
    #[cold]
    pub(crate) fn log_or_take(&self) -> Option<&'static ThreadLog> {
        if let Some(log) = self.log.get() {
            return Some(log);
        }
        let key = END_OF_THREAD.get_or_init(make_key);
        let log = ThreadLog::take(self.os_thread())?.keep();
        self.log.set(Some(log));
        if let Some(key) = key {
            // SAFETY: the key is valid; the value is only handed to our own
            // destructor below.
            unsafe { libc::pthread_setspecific(*key, std::ptr::from_ref(log).cast()) };
        }
        Some(log)
    }
}

fn make_key() -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: `key` is ours; the destructor matches the expected signature.
    let made = unsafe { libc::pthread_key_create(&mut key, Some(give_log_back)) };
    (made == 0).then_some(key)
}

extern "C" fn give_log_back(log: *mut libc::c_void) {
    fail_open::in_any_case((), || {
        ThisThread::with(|this| this.log.set(None));
        // SAFETY: the value is the `&'static ThreadLog` stored by `log_or_take`.
        if let Some(log) = unsafe { log.cast::<ThreadLog>().as_ref() } {
            log.give_back();
        }
    });
}
