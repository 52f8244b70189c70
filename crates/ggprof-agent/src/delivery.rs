//! `GGML_PROFILE`: writing the profile while the process still runs. The installed `ggprof` writes
//! it. This file decides when, and makes sure that the program does not notice.
//!
//! A profile is written when the last scheduler is freed and when the program ends, each time with
//! everything recorded until then, and only if there is something new. The recording is removed
//! after the last successful delivery.
//!
//! Nothing here allocates or waits for a lock, because `_exit` is called from signal handlers (by
//! llama.cpp's tools, at the second Ctrl-C).

use std::ffi::CStr;
use std::sync::atomic::Ordering;

use ggprof_ggml::PROFILE_VARIABLE;

use crate::config::{Delivery, identity_of_stdout};
use crate::fault::fault_point;
use crate::observe::this_thread::ThisThread;
use crate::recorder::Recorder;
use crate::spawn::{self, NotStarted};
use crate::{clock, quiet_log};

/// If a program makes and frees schedulers all the time, its profile is written so rarely that this takes a
/// twentieth of its time; the last one is written when it ends.
const TIMES_ITS_COST: u64 = 20;
/// Exit codes of `ggprof` that mean that everything was written.
const DELIVERED: [i32; 2] = [0, 3];

impl Delivery {
    /// The last scheduler was freed: the program may be done, or make another.
    pub(crate) fn between_schedulers(&self, recorder: &Recorder) {
        let last = &recorder.delivered;
        let since =
            clock::nanoseconds(libc::CLOCK_MONOTONIC) - last.finished_ns.load(Ordering::Relaxed);
        if since >= TIMES_ITS_COST * last.took_ns.load(Ordering::Relaxed) {
            ThisThread::with(|this| recorder.stamp_end(this.run.get()));
            self.deliver(recorder);
            recorder.spool.header.set_end(0);
        }
    }

    /// The program ends now; the end has been stamped.
    pub(crate) fn at_end(&self, recorder: &Recorder) {
        self.deliver(recorder);
        if !recorder.delivered.went_wrong.load(Ordering::Relaxed) {
            recorder.spool.remove();
        }
    }

    /// Writes what was asked for, if there are graph runs that were not in it before.
    fn deliver(&self, recorder: &Recorder) {
        let (runs, last) = (recorder.runs(), &recorder.delivered);
        if runs == last.runs.load(Ordering::Relaxed) {
            return;
        }
        // Counts as failed until the command has succeeded.
        let went_wrong = last.went_wrong.swap(true, Ordering::Relaxed);
        let again = last.runs.load(Ordering::Relaxed) > 0 && !went_wrong;
        let Some(_alone) = last.busy.try_lock() else { return };
        fault_point!();
        let start = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        // A forked child has a copy of its parent's unwritten output, which only the parent may
        // write.
        if self.output.is_none() && !recorder.is_forked {
            flush_stdout();
        }
        let went_well = self.run_command(recorder.spool.path(), again);
        fault_point!();
        last.runs.store(runs, Ordering::Relaxed);
        last.went_wrong.store(!went_well, Ordering::Relaxed);
        let end = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        last.took_ns.store(end - start, Ordering::Relaxed);
        last.finished_ns.store(end, Ordering::Relaxed);
    }

    /// `again`: this process has written the file before.
    fn run_command(&self, spool: &CStr, again: bool) -> bool {
        if self.output.is_none() && self.stdout != identity_of_stdout() {
            kept(spool, &[b"standard output is not the one with which the program started"]);
            return false;
        }
        let mut arguments = [self.command.as_ptr(), c"deliver".as_ptr(), spool.as_ptr()]
            .into_iter()
            .chain(again.then_some(c"--again".as_ptr()))
            .chain(self.output.as_deref().map(CStr::as_ptr));
        let arguments: [_; 6] =
            std::array::from_fn(|_| arguments.next().unwrap_or(std::ptr::null()));
        let mut environment = self.environment.iter().map(|entry| entry.as_ptr());
        let environment: [_; 8] =
            std::array::from_fn(|_| environment.next().unwrap_or(std::ptr::null()));
        match spawn::run(&self.command, &arguments, &environment, &self.directory) {
            // The command reports its other errors itself.
            Ok(code) => DELIVERED.contains(&code),
            Err(NotStarted) => {
                kept(spool, &[self.command.to_bytes(), b" cannot be run"]);
                false
            }
        }
    }
}

fn kept(spool: &CStr, why: &[&[u8]]) {
    let [first, second] = [why[0], why.get(1).copied().unwrap_or_default()];
    let spool = spool.to_bytes();
    quiet_log::say(&[
        PROFILE_VARIABLE.as_bytes(),
        b": ",
        first,
        second,
        b"; the recording is kept, open it with: ggprof report ",
        spool,
    ]);
}

/// Makes sure that what the program printed comes before the summary. Leaves the buffer alone if
/// another thread is using it.
fn flush_stdout() {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
        fn ftrylockfile(file: *mut libc::FILE) -> libc::c_int;
        fn funlockfile(file: *mut libc::FILE);
        fn fflush_unlocked(file: *mut libc::FILE) -> libc::c_int;
    }
    // SAFETY: libc's own stream, flushed while this thread holds its lock.
    unsafe {
        if !stdout.is_null() && ftrylockfile(stdout) == 0 {
            fflush_unlocked(stdout);
            funlockfile(stdout);
        }
    }
}
