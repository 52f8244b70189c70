//! The budget of a phase: its wall time divided among what it went to, to the nanosecond.
//!
//! Each instant counts for one thing. Where several happen at once, the first of this list does:
//!
//! 1. a device computes (the first one, in the recording's order, where several do)
//! 2. the host computes; what its threads wait for each other in an op is kept apart
//! 3. a copy runs
//! 4. a pipeline is compiled
//! 5. a graph of another phase runs, such as another context's
//! 6. a call that starts work on a device runs
//! 7. the program waits for results
//! 8. a graph run is under way: its next op is being launched on a device, the threads of the host are
//!    between two ops, or the scheduler is at work
//! 9. a call of libllama is under way, outside of its graph runs
//! 10. the program itself
//!
//! Gaps of the recording belong to no phase's wall time, and are in no budget.

mod claims;
mod divide;
mod free_time;
mod op_time;
mod quiet;
#[cfg(test)]
mod tests;
mod undivided;

use crate::layers::{Module, Places};
use crate::phases::{PhaseKind, Phases};
pub(crate) use claims::is_of_host;
use ggprof_trace::{BackendIndex, CopyDirection, EventId, Trace};

/// More different phases than this are summed up by kind.
const MOST_GROUPS: usize = 8;

/// What an instant went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Spent {
    Computing {
        backend: BackendIndex,
        part: ModelPart,
    },
    /// Threads of the host waited, inside an op, for the slowest of them.
    UnequalThreads,
    /// All threads were between two ops of a split.
    Barriers,
    /// A copy under which nothing computed.
    Copying(CopyDirection),
    CompilingPipelines,
    /// Graphs that belong to other phases ran, such as another context's.
    OtherRuns,
    /// A device had nothing to do, because the host had not launched it yet.
    Launching {
        backend: BackendIndex,
    },
    /// A kernel was loaded or compiled, before its first use or as part of it.
    FirstUse {
        backend: BackendIndex,
    },
    /// The program waited for results while nothing was seen to compute.
    WaitingForDevice,
    /// Between splits, before the first op of a run and after its last.
    Scheduling,
    /// A graph run of which no op was recorded.
    UnseenRun,
    /// In a call of libllama, outside of its graph runs.
    BuildingGraphs,
    /// Between the program's calls of libllama.
    Program,
    /// Between graph runs of a program whose calls of libllama were not seen.
    BetweenRuns,
}

/// Parts of a model, as far as they matter for where to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModelPart {
    Attention,
    FeedForward,
    Experts,
    Recurrent,
    Output,
    /// Norms, residuals, the input.
    Rest,
    /// Ops that the recording does not tell apart.
    Undivided,
}

impl ModelPart {
    pub const ALL: [Self; 7] = [
        Self::Attention,
        Self::FeedForward,
        Self::Experts,
        Self::Recurrent,
        Self::Output,
        Self::Rest,
        Self::Undivided,
    ];

    pub fn of(module: Module) -> Self {
        match module {
            Module::Attention => Self::Attention,
            Module::Ffn => Self::FeedForward,
            Module::Experts => Self::Experts,
            Module::Recurrent => Self::Recurrent,
            Module::Output => Self::Output,
            Module::Input | Module::Norm | Module::Residual | Module::Other => Self::Rest,
        }
    }
}

/// The wall time of a phase, or of several that are repetitions of each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    pub label: String,
    pub kind: PhaseKind,
    /// Which phases it is of, by their places.
    pub phases: Vec<u32>,
    pub steps: u64,
    pub runs: u64,
    /// 0 where there are none.
    pub tokens: u64,
    pub wall_ns: u64,
    /// The longest first; together the wall time.
    pub rows: Vec<BudgetRow>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetRow {
    pub spent: Spent,
    pub ns: u64,
    /// The part of it that was measured as a whole with other rows, and shared out by samples.
    pub estimated_ns: u64,
}

impl Budget {
    /// What a phase is counted in: tokens, or graph runs where there are none.
    pub fn units(&self) -> u64 {
        if self.tokens > 0 { self.tokens } else { self.runs.max(1) }
    }

    /// The sum of the rows that are wanted.
    pub fn sum(&self, is_wanted: impl Fn(Spent) -> bool) -> u64 {
        self.rows.iter().filter(|row| is_wanted(row.spent)).map(|row| row.ns).sum()
    }

    /// A part of its wall time as a fraction of one.
    pub fn share(&self, ns: u64) -> f64 {
        if self.wall_ns == 0 { 0.0 } else { ns as f64 / self.wall_ns as f64 }
    }

    fn add(&mut self, spent: Spent, ns: u64) {
        self.add_row(BudgetRow { spent, ns, estimated_ns: 0 });
    }

    fn add_row(&mut self, new: BudgetRow) {
        match self.rows.iter_mut().find(|row| row.spent == new.spent) {
            Some(row) => {
                row.ns += new.ns;
                row.estimated_ns += new.estimated_ns;
            }
            None if new.ns > 0 => self.rows.push(new),
            None => {}
        }
    }

    fn finish(mut self) -> Self {
        self.rows.sort_by_key(|row| (std::cmp::Reverse(row.ns), row.spent));
        self
    }
}

/// All phases, divided.
#[derive(Debug)]
pub struct Divided {
    /// The budget of each phase, in their order.
    pub budgets: Vec<Budget>,
    /// Copies under which nothing computed for a while, in no order; a copy may be here in pieces.
    pub exposed: Vec<(EventId, u64)>,
}

pub fn divided(trace: &Trace, phases: &Phases, places: &Places) -> Divided {
    let mut divided = divide::divide(trace, phases, places);
    undivided::share_out(trace, phases, places, &mut divided.budgets);
    divided
}

/// The budget of each phase, in their order.
pub fn budgets(trace: &Trace, phases: &Phases, places: &Places) -> Vec<Budget> {
    divided(trace, phases, places).budgets
}

/// Repetitions together, in the order of the first of each; where there are many different ones,
/// those of a kind.
pub fn summed(phases: &Phases, budgets: &[Budget]) -> Vec<Budget> {
    let named = |places: &Vec<u32>| {
        let mut sum = sum(budgets, places);
        sum.label = label(phases, budgets, places);
        sum
    };
    groups(phases).iter().map(named).collect()
}

/// What they are all called, or else their kind.
fn label(phases: &Phases, budgets: &[Budget], places: &[u32]) -> String {
    let label = |place: u32| budgets[place as usize].label.as_str();
    let first = label(places[0]);
    if places.iter().all(|&place| label(place) == first) {
        return first.to_owned();
    }
    // The process stands behind it, where there are several.
    let phase = &phases.phases[places[0] as usize];
    let process = first.strip_prefix(&phase.label()).unwrap_or_default();
    format!("{}{process}", phase.kind.name())
}

/// The places of the phases that have a budget together.
fn groups(phases: &Phases) -> Vec<Vec<u32>> {
    let groups = phases.group_places();
    if groups.len() > MOST_GROUPS { phases.kind_places() } else { groups }
}

/// For each phase the place of its budget among the sums.
pub(crate) fn budget_of_phase(phases: &Phases) -> Vec<u32> {
    let mut of_phase = vec![0; phases.phases.len()];
    for (budget, places) in (0..).zip(groups(phases)) {
        places.iter().for_each(|&phase| of_phase[phase as usize] = budget);
    }
    of_phase
}

/// At least one.
fn sum(budgets: &[Budget], places: &[u32]) -> Budget {
    let mut of_group = places.iter().map(|&place| &budgets[place as usize]);
    let Some(mut sum) = of_group.next().cloned() else { unreachable!("a group has a phase") };
    for other in of_group {
        sum.phases.extend(&other.phases);
        sum.steps += other.steps;
        sum.runs += other.runs;
        sum.tokens += other.tokens;
        sum.wall_ns += other.wall_ns;
        other.rows.iter().for_each(|row| sum.add_row(*row));
    }
    sum.finish()
}
