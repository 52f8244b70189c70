//! Whether CUPTI is attached, the timers of the backends, and what coverage was recorded for both.

use std::sync::atomic::Ordering;

use ggprof_spool::layout::{Covered, CoveredHow, CoveredWhy, Why};

use super::api::NAME;
use super::callbacks::CALLBACKS;
use super::cupti::session::Session;
use super::cupti::{Cupti, library};
use super::driver::Driver;
use super::process::{ATTACHED, CudaProcess, LoadedCupti, now_ns, work};
use super::settings::{self, CudaLevel};
use super::split_timer::SplitTimer;
use super::windows::Windows;
use super::{launches, note_waited};
use crate::fault::fault_point;
use crate::observe::adopted::Adopted;
use crate::observe::backends;
use crate::observe::coverage::{self, Subject};
use crate::recorder::admission::Owed;
use crate::recorder::current;
use crate::recorder::lane::HeldLane;

#[derive(Debug)]
pub(super) struct Timekeeper {
    pub(super) windows: Windows,
    pub(super) session: Option<Session>,
    /// What CUPTI still holds.
    pub(super) owed: Option<Owed<'static>>,
    pub(super) timers: Vec<SplitTimer>,
    pub(super) driver: Option<Driver>,
    /// Backends whose coverage is written.
    covered: Vec<u32>,
    /// Why there are no kernels, once that is known.
    problem: Option<String>,
}

impl Timekeeper {
    pub(super) fn new(level: CudaLevel, driver: Option<Driver>) -> Timekeeper {
        Timekeeper {
            windows: Windows::new(level, current::budget_permille()),
            session: None,
            owed: None,
            timers: Vec::new(),
            driver,
            covered: Vec::new(),
            problem: None,
        }
    }

    pub(super) fn attach(&mut self, loaded: &'static LoadedCupti, lane: &HeldLane<'_>) {
        let began = now_ns();
        for timer in &mut self.timers {
            timer.drain(lane);
        }
        work().get_or_insert_default().records = 0;
        launches::forget();
        fault_point!();
        let attached = loaded.library.as_ref().map_err(Clone::clone).and_then(|cupti| {
            Session::attach(cupti, CALLBACKS).map_err(|failure| failure.sentence())
        });
        fault_point!();
        match attached {
            Ok(session) => {
                self.session = Some(session);
                ATTACHED.store(true, Ordering::Release);
                let loading_ns = if self.windows.is_first() { loaded.took_ns } else { 0 };
                self.windows.attached(loading_ns + (now_ns() - began));
            }
            Err(sentence) => {
                self.problem = Some(sentence);
                self.windows.give_up();
            }
        }
    }

    /// No split is being computed, and its lock keeps others from starting.
    pub(super) fn detach(&mut self, lane: &HeldLane<'_>) {
        let began = now_ns();
        let open = self.windows.close();
        // After this, no more records are expected, whether or not they came.
        let _settled = self.owed.take();
        self.let_go();
        fault_point!();
        let records = work().as_mut().map_or(0, |work| {
            work.give_up_waiting(lane);
            work.write_clock(lane);
            work.records
        });
        fault_point!();
        if let Some(open) = open {
            self.windows.detached(&open, now_ns() - began, records);
        }
    }

    /// Takes CUPTI out of the process, as for [`Self::detach`].
    pub(super) fn let_go(&mut self) {
        backends::wait_for_all_of(NAME);
        note_waited();
        fault_point!();
        if let Some(session) = self.session.take() {
            ATTACHED.store(false, Ordering::Release);
            fault_point!();
            drop(session);
        }
        self.owed = None;
    }

    /// Writes all records there are, before CUDA is unloaded or a backend freed.
    pub(super) fn deliver(&mut self, lane: &HeldLane<'_>) {
        let Some(session) = &self.session else { return };
        if session.deliver().is_err() {
            return;
        }
        let _settled = self.owed.take();
        fault_point!();
        if let Some(work) = work().as_mut() {
            work.give_up_waiting(lane);
            work.write_clock(lane);
        }
    }

    /// `graphs` as in [`CudaProcess`].
    pub(super) fn cover(
        &mut self,
        lane: &HeldLane<'_>,
        adopted: &Adopted,
        (level, graphs): (CudaLevel, CoveredWhy),
    ) {
        let backend = adopted.id();
        if self.covered.contains(&backend) {
            return;
        }
        self.covered.push(backend);
        fault_point!();
        let seen = |code| (CoveredHow::ActivityRecords, Why::plain(code));
        let told = match (self.problem.as_deref(), level) {
            (Some(detail), _) => {
                (CoveredHow::Not, Why { code: CoveredWhy::TracingRefused, detail })
            }
            (None, CudaLevel::Full) => seen(graphs),
            (None, CudaLevel::Sample) => seen(CoveredWhy::InSamples),
            (None, _) => (CoveredHow::Not, Why::plain(CoveredWhy::WholeSplitsOnly)),
        };
        coverage::say_of_kernels(lane, backend, told);
        if told.0 != CoveredHow::Not && settings::settings().is_some_and(|it| it.graphs_are_off) {
            let told = (told.0, Why::plain(CoveredWhy::GraphsOff));
            coverage::say(lane, Subject::Backend(backend), Covered::Kernels, told);
        }
    }
}

impl CudaProcess {
    pub(super) fn wants_kernels(&self) -> bool {
        matches!(self.level, CudaLevel::Sample | CudaLevel::Full)
    }

    /// CUPTI, loaded at the first call if kernels are wanted. `None` while another thread loads it.
    /// Must be called without a lock: loading runs constructors, which may do anything, even wait
    /// for threads that compute.
    pub(super) fn loaded_cupti(&'static self) -> Option<&'static LoadedCupti> {
        if !self.wants_kernels() {
            return None;
        }
        if let Some(loaded) = self.cupti.get() {
            return Some(loaded);
        }
        let _alone = self.loading.try_lock()?;
        if self.cupti.get().is_none() {
            let began = now_ns();
            fault_point!();
            let library = library::open(settings::settings()?).and_then(Cupti::from_library);
            fault_point!();
            let _ = self.cupti.set(LoadedCupti { library, took_ns: now_ns() - began });
        }
        self.cupti.get()
    }
}
