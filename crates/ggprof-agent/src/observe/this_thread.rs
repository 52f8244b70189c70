//! What the agent keeps per thread. Nothing needs initialising or dropping, so reading it never
//! allocates and works until the very end of the thread.

use std::cell::Cell;

use ggprof_spool::layout::NONE;

use super::batches::Call;
use super::experts::Choices;
use super::instance::LastInstance;
use super::visits::Visits;
use crate::arch;
use crate::fault::fault_point;
use crate::lock::{Once, rank};
use crate::recorder::lane::HeldLane;
use crate::recorder::thread_log::ThreadLog;
use crate::recorder::{Recorder, current};

#[derive(Debug)]
pub(crate) struct ThisThread {
    /// The guard's re-entrancy mark.
    pub(crate) inside: Cell<bool>,
    pub(crate) log: Cell<Option<&'static ThreadLog>>,
    pub(crate) preferred_lane: Cell<usize>,
    /// The graph run this thread is computing, 0 outside.
    pub(crate) run: Cell<u32>,
    pub(crate) splits_in_run: Cell<u32>,
    /// The call of libllama that it is in, null outside (`observe::batches`).
    pub(crate) call: Cell<*const Call>,
    /// The scheduler of that run, null without.
    pub(crate) scheduler: Cell<usize>,
    /// The device's split being computed, null without (`observe::visits`).
    pub(crate) visits: Cell<*mut Visits>,
    /// The choices of experts in the processor's split, null without (`observe::experts`).
    pub(crate) choices: Cell<*const Choices>,
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
    /// This thread holds the locks during a fork (`forking`).
    pub(crate) has_all_locks: Cell<bool>,
}

// Zero bytes are a valid `ThisThread`.
arch::thread_memory!("ggprof_this_thread", fn of_this_thread() -> ThisThread);

/// Gives a log back when its thread ends.
static END_OF_THREAD: Once<{ rank::THREAD_KEY }, Option<libc::pthread_key_t>> = Once::new();

impl ThisThread {
    /// Where these are, for `hooks::barrier`; the log is null without one.
    pub(crate) const INSIDE: usize = std::mem::offset_of!(ThisThread, inside);
    pub(crate) const LOG: usize = std::mem::offset_of!(ThisThread, log);
    /// For `hooks::entry`.
    pub(crate) const CALLER: usize = std::mem::offset_of!(ThisThread, caller);

    #[inline(always)]
    pub(crate) fn with<R>(work: impl FnOnce(&ThisThread) -> R) -> R {
        // SAFETY: this thread's own memory, zeroed when the thread began, which
        // is a valid value; cells keep it to this thread.
        work(unsafe { &*of_this_thread() })
    }

    pub(crate) fn os_thread(&self) -> u32 {
        if self.os_thread.get() == 0 {
            // SAFETY: a system call without arguments.
            self.os_thread.set(unsafe { libc::gettid() } as u32);
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

    /// This thread is the only one of a forked child, and another one than in the parent.
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
    ThisThread::with(|this| this.log.set(None));
    // SAFETY: the value is the `&'static ThreadLog` stored by `log_or_take`.
    if let Some(log) = unsafe { log.cast::<ThreadLog>().as_ref() } {
        log.give_back();
    }
}
