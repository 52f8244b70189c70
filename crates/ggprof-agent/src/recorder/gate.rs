//! Whether to record now: the window that was given at the start, and later commands (`ggprof ctl`,
//! SIGUSR2), which are in the file's header.
//!
//! Graph runs are recorded whole or not at all: the gate is asked when a run begins. While it is
//! shut, not one byte of the file changes.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use ggprof_spool::layout::{Control, NONE, Window};
use ggprof_spool::writer::HeaderPage;

use super::launcher::Launcher;
use crate::clock;
use crate::config::Span;

/// Stands for the number of a run that is not recorded.
pub(crate) const UNRECORDED: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Gate {
    span: Span,
    /// Graph runs of the program, recorded or not.
    seen: AtomicU64,
    /// When the first recorded run began.
    opened_ns: AtomicU64,
    /// Runs that were begun while the gate was shut and have not ended.
    unrecorded: AtomicU32,
    /// The gate of the recording before this one, whose runs may not have ended yet.
    before: Option<&'static Gate>,
    /// Who has to be there.
    launcher: Option<Launcher>,
    /// A device's library still holds records of admitted runs; a stop waits for them.
    owed: AtomicBool,
}

/// What a thread may write; `Admission` does the counting that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// Nothing.
    Shut,
    /// Write: it is inside a run that was admitted.
    InRun,
    /// Write, and say when it is done: [`HeaderPage::leave`].
    Counted,
    /// Nothing, for the length of a run, and say when that is over:
    /// [`Gate::end_unrecorded`].
    Unrecorded,
}

impl Gate {
    pub(crate) fn new(span: Span, header: &HeaderPage) -> Gate {
        if span.start_ns > 0 || span.first_graph > 1 {
            header.set_window(Window::NotYet);
        }
        Gate {
            span,
            seen: AtomicU64::new(0),
            opened_ns: AtomicU64::new(0),
            unrecorded: AtomicU32::new(0),
            before: None,
            launcher: None,
            owed: AtomicBool::new(false),
        }
    }

    /// Whether only `ggprof attach` can open it: it is shut, and neither a window nor a command will open it.
    pub(super) fn is_held(&self, header: &HeaderPage) -> bool {
        !self.span.is_limited()
            && header.control() == Control::Window
            && header.window() == Window::NotYet
    }

    /// Another recording of this process was stopped, and this one begins.
    pub(super) fn follow(&mut self, before: &'static Gate) {
        self.before = Some(before);
    }

    /// The recording is for this one only.
    pub(super) fn end_with(&mut self, launcher: Option<Launcher>) {
        self.launcher = launcher;
    }

    /// The number of the program's next graph run.
    pub(crate) fn next_number(&self) -> u64 {
        self.seen.fetch_add(1, Relaxed) + 1
    }

    /// Asked once for every graph run of the program: counted or unrecorded.
    pub(crate) fn run(&self, header: &HeaderPage, number: u64) -> Admitted {
        if header.control() == Control::Window {
            self.move_window(header, number);
        }
        let is_gone = |launcher: &Launcher| launcher.is_gone(now_ns());
        if header.control() != Control::Stop && self.launcher.as_ref().is_some_and(is_gone) {
            header.set_control(Control::Stop);
        }
        if self.enter(header) {
            return Admitted::Counted;
        }
        self.unrecorded.fetch_add(1, Relaxed);
        Admitted::Unrecorded
    }

    pub(crate) fn end_unrecorded(&self) {
        self.unrecorded.fetch_sub(1, Relaxed);
    }

    /// Asked by a thread whose current run has this number.
    pub(crate) fn thread_in(&self, header: &HeaderPage, run: u32) -> Admitted {
        match run {
            UNRECORDED => Admitted::Shut,
            NONE if self.enter(header) => Admitted::Counted,
            NONE => Admitted::Shut,
            _ => Admitted::InRun,
        }
    }

    /// Asked by the code that writes records that are still owed, on any thread.
    pub(crate) fn bringer_of_owed(&self, header: &HeaderPage) -> Admitted {
        if self.owed.load(Acquire) { Admitted::InRun } else { self.thread_in(header, NONE) }
    }

    /// From inside an admitted run: records of it will come later, and whoever asks for a stop
    /// has to wait for them.
    pub(crate) fn owe(&self, header: &HeaderPage) {
        if !self.owed.swap(true, AcqRel) {
            header.enter();
        }
    }

    /// All owed records are written.
    pub(crate) fn settle(&self, header: &HeaderPage) {
        if self.owed.swap(false, AcqRel) {
            header.leave();
        }
    }

    /// Whether something that belongs to no known run is missing from the recording.
    pub(crate) fn misses(&self, header: &HeaderPage) -> bool {
        is_open(header) && !self.has_unrecorded()
    }

    fn has_unrecorded(&self) -> bool {
        self.unrecorded.load(Relaxed) > 0 || self.before.is_some_and(Gate::has_unrecorded)
    }

    /// A stop writes its request first and then waits until no thread is inside. So a thread
    /// that enters checks again once it is inside.
    fn enter(&self, header: &HeaderPage) -> bool {
        if is_open(header) {
            header.enter();
            if is_open(header) {
                return true;
            }
            header.leave();
        }
        false
    }

    fn move_window(&self, header: &HeaderPage, number: u64) {
        let span = &self.span;
        if header.window() == Window::Over || !span.is_limited() {
            return;
        }
        let now = now_ns();
        if header.window() == Window::NotYet && now >= span.start_ns && number >= span.first_graph {
            header.set_window(Window::Open);
        }
        if header.window() == Window::Open {
            let opened = match self.opened_ns.compare_exchange(0, now, Relaxed, Relaxed) {
                Ok(_) => now,
                Err(opened) => opened,
            };
            if number > span.last_graph || now.saturating_sub(opened) >= span.duration_ns {
                header.set_window(Window::Over);
            }
        }
    }
}

fn now_ns() -> u64 {
    clock::nanoseconds(libc::CLOCK_MONOTONIC)
}

fn is_open(header: &HeaderPage) -> bool {
    header.control().records(header.window())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_spool::layout::{ClockKind, HEADER_BYTES};
    use ggprof_spool::writer::HeaderFacts;

    #[repr(C, align(4096))]
    struct Page([u8; HEADER_BYTES]);

    fn header() -> HeaderPage {
        let facts = HeaderFacts {
            clock: ClockKind::MonotonicNs,
            pid: 1,
            options: 0,
            start_ticks: 0,
            start_monotonic_ns: 0,
            start_realtime_ns: 0,
            command: b"",
            cpu_name: b"",
            agent_version: b"",
        };
        let page = Box::leak(Box::new(Page([0; HEADER_BYTES])));
        // SAFETY: a zeroed, aligned page that is never freed.
        unsafe { HeaderPage::create(page.0.as_mut_ptr(), &facts) }
    }

    fn next_run(gate: &Gate, header: &HeaderPage) -> Admitted {
        gate.run(header, gate.next_number())
    }

    fn admitted(span: Span, runs: usize) -> Vec<bool> {
        let header = header();
        let gate = Gate::new(span, &header);
        (0..runs).map(|_| next_run(&gate, &header) == Admitted::Counted).collect()
    }

    #[test]
    fn without_a_window_everything_is_recorded() {
        assert_eq!(admitted(Span::default(), 2), [true, true]);
    }

    #[test]
    fn graphs_are_counted_from_one_and_both_ends_belong_to_the_window() {
        let span = Span { first_graph: 2, last_graph: 3, ..Span::default() };
        assert_eq!(admitted(span, 5), [false, true, true, false, false]);
    }

    #[test]
    fn a_window_in_time() {
        assert_eq!(admitted(Span { start_ns: u64::MAX, ..Span::default() }, 2), [false, false]);
        assert_eq!(admitted(Span { start_ns: 1, ..Span::default() }, 1), [true]);
        assert_eq!(admitted(Span { duration_ns: 0, ..Span::default() }, 2), [false, false]);
    }

    #[test]
    fn what_was_asked_for_later_counts_more_than_the_window() {
        let header = header();
        let gate = Gate::new(Span { first_graph: 100, ..Span::default() }, &header);
        assert_eq!(next_run(&gate, &header), Admitted::Unrecorded);
        header.set_control(Control::Record);
        assert_eq!(next_run(&gate, &header), Admitted::Counted);
        header.set_control(Control::Stop);
        assert_eq!(gate.thread_in(&header, 7), Admitted::InRun, "a run that goes on is finished");
        assert_eq!(gate.thread_in(&header, NONE), Admitted::Shut);
        assert_eq!(next_run(&gate, &header), Admitted::Unrecorded);
    }

    #[test]
    fn what_is_owed_may_come_after_the_end() {
        let header = header();
        let gate = Gate::new(Span { last_graph: 1, ..Span::default() }, &header);
        assert_eq!(next_run(&gate, &header), Admitted::Counted);
        gate.owe(&header);
        header.leave();
        assert_eq!(next_run(&gate, &header), Admitted::Unrecorded);
        assert_eq!(gate.bringer_of_owed(&header), Admitted::InRun);
        gate.settle(&header);
        assert_eq!(gate.bringer_of_owed(&header), Admitted::Shut);
    }
}
