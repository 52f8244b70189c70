//! CUPTI in the process or not, the timers of the backends, and what the recording was
//! told of either.

use std::sync::atomic::Ordering;

use ggprof_spool::layout::{self, Covered, CoveredHow, NONE};

use super::split_timer::SplitTimer;
use super::windows::Windows;
use super::{ATTACHED, Cuda, graph_length, launches, note_waited, now_ns, work};
use crate::config::CudaLevel;
use crate::ffi::cuda_driver::Driver;
use crate::ffi::cupti::session::Session;
use crate::ffi::cupti::{Cupti, library};
use crate::hooks::cupti::CALLBACKS;
use crate::lifecycle;
use crate::observe::backends::{self, Adopted};
use crate::recorder::definitions::Owner;
use crate::recorder::lane::HeldLane;

#[derive(Debug)]
pub(super) struct State {
    pub(super) windows: Windows,
    pub(super) session: Option<Session>,
    /// Splits of CUDA devices being computed now, on all threads.
    pub(super) active: u32,
    pub(super) timers: Vec<SplitTimer>,
    pub(super) driver: Option<Driver>,
    /// Backends whose coverage is written.
    covered: Vec<u32>,
    /// Why there are no kernels, once that is known.
    problem: Option<String>,
}

impl State {
    pub(super) fn new(level: CudaLevel) -> State {
        State {
            windows: Windows::new(level, lifecycle::budget_permille()),
            session: None,
            active: 0,
            timers: Vec::new(),
            driver: Driver::loaded(),
            covered: Vec::new(),
            problem: None,
        }
    }

    pub(super) fn attach(&mut self, cuda: &'static Cuda, lane: &HeldLane<'_>) {
        let began = now_ns();
        for timer in &mut self.timers {
            timer.drain(lane);
        }
        work().get_or_insert_default().records = 0;
        let attached = cuda.load(lane).and_then(|cupti| {
            Session::attach(cupti, CALLBACKS).map_err(|failure| failure.sentence())
        });
        match attached {
            Ok(session) => {
                self.session = Some(session);
                ATTACHED.store(true, Ordering::Release);
                self.windows.attached(now_ns() - began);
            }
            Err(sentence) => {
                self.problem = Some(sentence);
                self.windows.give_up();
            }
        }
    }

    /// No split is being computed, and the state's lock keeps others from starting.
    pub(super) fn detach(&mut self, lane: &HeldLane<'_>) {
        let began = now_ns();
        backends::synchronize_cuda();
        note_waited();
        let Some(session) = self.session.take() else { return };
        ATTACHED.store(false, Ordering::Release);
        session.detach();
        let records = work().as_mut().map_or(0, |work| {
            work.give_up_waiting(lane);
            work.write_clock(lane);
            work.records
        });
        lane.recorder.settle();
        launches::forget();
        self.windows.detached(now_ns() - began, records);
    }

    /// All records there are, before CUDA or a backend goes.
    pub(super) fn deliver(&mut self, lane: &HeldLane<'_>) {
        if let Some(session) = &self.session
            && session.deliver().is_ok()
            && let Some(work) = work().as_mut()
        {
            work.give_up_waiting(lane);
            work.write_clock(lane);
            lane.recorder.settle();
        }
    }

    pub(super) fn cover(&mut self, lane: &HeldLane<'_>, adopted: &Adopted, level: CudaLevel) {
        let backend = adopted.id();
        if self.covered.contains(&backend) {
            return;
        }
        self.covered.push(backend);
        let (how, reason) = match (&self.problem, level) {
            (Some(problem), _) => (CoveredHow::Not, problem.as_str()),
            (None, CudaLevel::Full) => (CoveredHow::ActivityRecords, graph_length::told()),
            (None, CudaLevel::Sample) => (CoveredHow::ActivityRecords, "sample"),
            (None, _) => (CoveredHow::Not, "only the time of whole splits was asked for"),
        };
        let reason = lane.recorder.interner().lasting_text(lane, reason.as_bytes());
        let told: &[Covered] = match how {
            CoveredHow::Not => &[Covered::Kernels],
            _ => &[Covered::Ops, Covered::Kernels],
        };
        for &what in told {
            let record = layout::Coverage {
                how: how as u8,
                what: what as u16,
                backend,
                instance: adopted.instance().map_or(NONE, |instance| instance.id),
                reason,
                count: 1,
                ..Default::default()
            };
            lane.define_lasting(Owner::Backend(backend), &record.encode());
        }
    }
}

impl Cuda {
    /// Loads CUPTI at the first question.
    fn load(&'static self, lane: &HeldLane<'_>) -> Result<&'static Cupti, String> {
        let mut problem = None;
        let loaded = self.cupti.get_or_init(|| {
            library::open(&lane.recorder.cuda)
                .and_then(Cupti::from_library)
                .inspect_err(|sentence| problem = Some(sentence.clone()))
                .ok()
        });
        loaded.as_ref().ok_or_else(|| problem.unwrap_or_default())
    }
}
