//! When CUPTI is attached. Both attaching and being attached cost time. With `--cuda sample`, CUPTI
//! is attached for a few graph runs at a time, as often as the budget allows. The first window
//! comes at once, for the prompt and the first tokens.

use super::settings::CudaLevel;
use crate::observe::budget::Budget;

/// Runs of the first window: a warm-up, a prompt, and tokens until the CUDA graphs
/// are captured, which takes a few of the same kind in a row.
const FIRST_WINDOW_RUNS: u32 = 40;
const WINDOW_RUNS: u32 = 12;
/// What tracing adds to each piece of work: 1.3 µs per kernel were measured.
const COST_PER_RECORD_NS: u64 = 1_500;

/// What the two events around a split take: 4.7 µs were measured.
const COST_OF_EVENTS_NS: u64 = 5_000;

/// What to do before the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Stay,
    Attach,
    Detach,
}

/// The plan of one process.
#[derive(Debug)]
pub(crate) struct Windows {
    level: CudaLevel,
    budget: Budget,
    /// What the next window is expected to cost.
    expected_ns: u64,
    opened: u32,
    last_run: u32,
    open: Option<OpenWindow>,
    given_up: bool,
}

#[derive(Debug)]
pub(crate) struct OpenWindow {
    runs_left: u32,
    attach_ns: u64,
}

impl Windows {
    pub(crate) const fn new(level: CudaLevel, budget_permille: u32) -> Self {
        Windows {
            level,
            budget: Budget::new(budget_permille),
            expected_ns: 0,
            opened: 0,
            last_run: 0,
            open: None,
            given_up: false,
        }
    }

    /// No window was opened yet.
    pub(crate) fn is_first(&self) -> bool {
        self.opened == 0
    }

    /// Before a split of a CUDA device; a run may have several.
    pub(crate) fn before_split(&mut self, run: u32, now_ns: u64) -> Step {
        if std::mem::replace(&mut self.last_run, run) == run {
            return Step::Stay;
        }
        match (&mut self.open, self.level) {
            _ if self.given_up => Step::Stay,
            (None, CudaLevel::Full) => Step::Attach,
            (None, CudaLevel::Sample) => {
                let allowed = self.budget.allows(self.expected_ns, 0, now_ns);
                let due = self.opened == 0 || allowed;
                if due { Step::Attach } else { Step::Stay }
            }
            (Some(open), CudaLevel::Sample) => {
                open.runs_left = open.runs_left.saturating_sub(1);
                if open.runs_left == 0 { Step::Detach } else { Step::Stay }
            }
            _ => Step::Stay,
        }
    }

    pub(crate) fn attached(&mut self, took_ns: u64) {
        let runs_left = if self.opened == 0 { FIRST_WINDOW_RUNS } else { WINDOW_RUNS };
        self.opened += 1;
        self.open = Some(OpenWindow { runs_left, attach_ns: took_ns });
    }

    /// The window is over. The caller must report what it cost ([`Self::detached`]).
    pub(crate) fn close(&mut self) -> Option<OpenWindow> {
        self.open.take()
    }

    /// `records` pieces of work were recorded in the window.
    pub(crate) fn detached(&mut self, open: &OpenWindow, took_ns: u64, records: u64) {
        let cost = open.attach_ns + took_ns + records * COST_PER_RECORD_NS;
        self.budget.spend(cost);
        // The first window is longer, and loads CUPTI.
        self.expected_ns = if self.opened == 1 { cost / 2 } else { cost };
    }

    /// A split between windows was timed by events. All of them are, so this is taken from the
    /// budget of the windows.
    pub(crate) fn timed_by_events(&mut self, now_ns: u64) {
        self.budget.spend_unchosen(COST_OF_EVENTS_NS, now_ns);
    }

    /// The window cannot be closed now, because other threads compute. Tries again at the next
    /// split.
    pub(crate) fn stay_open(&mut self) {
        if let Some(open) = &mut self.open {
            open.runs_left = 1;
        }
    }

    /// CUPTI cannot be used in this process.
    pub(crate) fn give_up(&mut self) {
        self.given_up = true;
        self.open = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Runs of a millisecond each, from the first on; windows cost 20 ms.
    fn steps(level: CudaLevel, runs: u32) -> Vec<(u32, Step)> {
        let mut windows = Windows::new(level, 10);
        let mut steps = Vec::new();
        for run in 1..=runs {
            let step = windows.before_split(run, u64::from(run) * MS);
            match step {
                Step::Attach => windows.attached(13 * MS),
                Step::Detach => {
                    let open = windows.close().expect("it is open");
                    windows.detached(&open, 5 * MS, 1000);
                }
                Step::Stay => continue,
            }
            steps.push((run, step));
        }
        steps
    }

    #[test]
    fn the_first_window_comes_at_once_and_the_next_within_the_budget() {
        let steps = steps(CudaLevel::Sample, 10_000);
        assert_eq!(steps[..2], [(1, Step::Attach), (41, Step::Detach)]);
        let attached = steps.iter().filter(|(_, step)| *step == Step::Attach).count() as u64;
        assert!((3..=5).contains(&attached), "{steps:?}");
        let spent = attached * (18 * MS + 1000 * COST_PER_RECORD_NS);
        assert!(spent <= 10_000 * MS / 100, "{steps:?}");
    }

    #[test]
    fn full_attaches_once_and_the_others_never() {
        assert_eq!(steps(CudaLevel::Full, 5_000), [(1, Step::Attach)]);
        assert_eq!(steps(CudaLevel::Graph, 5_000), []);
        assert_eq!(steps(CudaLevel::Off, 5_000), []);
    }

    #[test]
    fn splits_of_one_run_count_once() {
        let mut windows = Windows::new(CudaLevel::Sample, 10);
        assert_eq!(windows.before_split(1, 0), Step::Attach);
        windows.attached(0);
        for _ in 0..100 {
            assert_eq!(windows.before_split(1, 0), Step::Stay);
        }
        assert!(windows.close().is_some());
    }

    #[test]
    fn nothing_is_tried_again_where_it_cannot_work() {
        let mut windows = Windows::new(CudaLevel::Full, 10);
        assert_eq!(windows.before_split(1, 0), Step::Attach);
        windows.give_up();
        assert_eq!(windows.before_split(2, 0), Step::Stay);
    }
}
