//! Which graphs have their parts timed, if not all. A timestamp costs a fast device a microsecond
//! or two, and a token of a small model has hundreds of dispatches. So the parts of a graph are
//! timed as often as a budget allows. The very first graph is timed, and so are the first two of
//! each shape (the second one is warm), until the advance on the budget is spent. Of the other
//! graphs, only beginning and end are timed.

use ggprof_spool::layout::{NO_NODE, WORK_WHOLE_SPLIT};

use super::place::WorkPlace;
use super::ranks;
use super::recording::{CommandWork, Name};
use crate::clock;
use crate::devices::vulkan::settings::Mode;
use crate::digest::NumberMap;
use crate::fault::fault_point;
use crate::lock::{Locked, Ranked};
use crate::observe::budget::Budget;
use crate::observe::visits::{Timed, Visits};

/// What a timestamp takes of the device's time: 1.7 µs on the fastest that was measured.
const COST_PER_STAMP_NS: u64 = 2_000;
/// What the beginning and the end of a graph take of the program's time: two timestamps, reading them,
/// and a record. On that device the quickest tokens of 1.3 ms took so much longer.
const COST_OF_WHOLE_NS: u64 = 7_000;
/// An advance on the budget for the first two graphs of each shape: enough for some six graphs of a
/// model of a billion weights. In a program that ends after two seconds it is a thousandth.
const ADVANCE_NS: u64 = 2_500_000;
/// Shapes to remember; if a program makes more, counting starts over.
const MOST_SHAPES: usize = 4096;

#[derive(Debug)]
pub(crate) struct Samples {
    state: Ranked<{ ranks::SAMPLES }, Sampling>,
}

#[derive(Debug)]
struct Sampling {
    budget: Budget,
    shapes: NumberMap<u32, Shape>,
}

#[derive(Debug, Default)]
struct Shape {
    /// How often its parts were timed.
    timed: u32,
    /// How many timestamps the last timing took.
    stamps: u32,
    /// The last position that had work of the device.
    last: u32,
}

/// What a command of a split means for its timing.
#[derive(Debug)]
pub(crate) enum Sampled {
    /// The command itself is timed.
    InParts,
    /// It is the first of a split that is timed as a whole.
    Begins(CommandWork),
    Within,
}

impl Samples {
    pub(crate) fn new(budget_permille: u32) -> Samples {
        let budget = Budget::new(budget_permille);
        Samples { state: Ranked::new(Sampling { budget, shapes: NumberMap::default() }) }
    }

    pub(crate) fn sampled(&self, mode: Mode, visits: &mut Visits) -> Sampled {
        match visits.timed {
            Timed::InParts => Sampled::InParts,
            Timed::AsWhole => Sampled::Within,
            Timed::Undecided => {
                let now_ns = || clock::nanoseconds(libc::CLOCK_MONOTONIC);
                let in_parts = mode != Mode::Sample
                    || self.state().next(visits.shape, visits.node_count(), now_ns());
                fault_point!();
                visits.timed = if in_parts { Timed::InParts } else { Timed::AsWhole };
                if in_parts { Sampled::InParts } else { Sampled::Begins(whole(visits)) }
            }
        }
    }

    /// A command buffer of the split ends, with so many timestamps in it; the split's end, if
    /// this is the last one.
    pub(crate) fn end(&self, visits: &Visits, stamps: u32) -> Option<CommandWork> {
        let mut state = self.state();
        let shape = state.shapes.get_mut(&visits.shape)?;
        let last = visits.position_from(shape.last);
        shape.last = last.unwrap_or(shape.last);
        fault_point!();
        if visits.timed == Timed::InParts {
            shape.stamps += stamps;
            state.budget.spend(u64::from(stamps) * COST_PER_STAMP_NS);
            return None;
        }
        last.map(|_| {
            state
                .budget
                .spend_unchosen(COST_OF_WHOLE_NS, clock::nanoseconds(libc::CLOCK_MONOTONIC));
            whole(visits)
        })
    }

    fn state(&self) -> Locked<'_, { ranks::SAMPLES }, Sampling> {
        self.state.lock()
    }
}

impl Sampling {
    /// Whether the next graph of this shape is timed in its parts.
    fn next(&mut self, shape: u32, nodes: usize, now_ns: u64) -> bool {
        if self.shapes.len() >= MOST_SHAPES {
            self.shapes.clear();
        }
        let is_first = self.shapes.is_empty();
        let shape = self.shapes.entry(shape).or_default();
        // Nodes that were never timed have a timestamp each, at most.
        let stamps = if shape.timed == 0 { nodes as u64 } else { u64::from(shape.stamps) };
        let advance_ns = if shape.timed < 2 { ADVANCE_NS } else { 0 };
        let in_parts =
            self.budget.allows(stamps * COST_PER_STAMP_NS, advance_ns, now_ns) || is_first;
        if in_parts {
            shape.timed += 1;
            shape.stamps = 0;
        }
        in_parts
    }
}

fn whole(visits: &Visits) -> CommandWork {
    let place =
        WorkPlace { split: visits.split, position: NO_NODE, backend: visits.backend, cause: 0 };
    CommandWork::new(WORK_WHOLE_SPLIT, Name::Text(""), place, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Graphs of a millisecond each with 250 nodes, as many timestamps, and these shapes:
    /// the numbers, from 0 on, of those that are timed in their parts.
    fn timed(shapes: impl IntoIterator<Item = u32>) -> Vec<u64> {
        let mut state = Sampling { budget: Budget::new(10), shapes: NumberMap::default() };
        let mut timed = Vec::new();
        for (number, shape) in (0..).zip(shapes) {
            if state.next(shape, 250, number * MS) {
                timed.push(number);
                state.shapes.entry(shape).or_default().stamps = 250;
                state.budget.spend(250 * COST_PER_STAMP_NS);
            }
        }
        timed
    }

    #[test]
    fn a_shape_is_timed_cold_warm_and_as_the_budget_allows() {
        // Half a millisecond each: a hundredth of fifty graphs.
        assert_eq!(timed([7; 260]), [0, 1, 150, 200, 250]);
    }

    #[test]
    fn new_shapes_are_timed_until_the_advance_is_spent() {
        let timed = timed(0..2000);
        assert_eq!(timed[..5], [0, 1, 2, 3, 4]);
        assert!(timed[5..].is_sorted_by(|a, b| b - a == 50), "{timed:?}");
        assert_eq!(timed.len(), 5 + 2000 / 50 - 1, "{timed:?}");
    }

    #[test]
    fn the_first_graph_of_all_is_timed_whatever_it_costs() {
        let mut state = Sampling { budget: Budget::new(0), shapes: NumberMap::default() };
        assert!(state.next(1, 1_000_000, 0));
        assert!(!state.next(2, 1_000_000, MS));
    }
}
