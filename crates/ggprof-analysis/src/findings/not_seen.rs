//! The part of a phase of which nobody knows what it went to: rules cannot tell anything of it.

use super::is_work;
use super::scene::Scene;
use crate::budget::{Budget, Spent};
use ggprof_trace::{BackendIndex, EventKind, Measured};

/// A row of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotSeen {
    /// As a place among the budgets.
    pub budget: usize,
    pub spent: Spent,
    pub ns: u64,
}

/// Of the phase's wall time; less changes no answer.
const LEAST: f64 = 0.1;

pub(super) fn not_seen(scene: &Scene<'_>, budgets: &[Budget]) -> Vec<NotSeen> {
    let of_budget = |(place, budget): (usize, &Budget)| {
        let is_it = |spent| match spent {
            Spent::WaitingForDevice | Spent::UnseenRun => true,
            Spent::Launching { backend } => !is_seen(scene, backend),
            _ => false,
        };
        let rows = budget.rows.iter().filter(|row| budget.share(row.ns) >= LEAST);
        let rows = rows.filter(|row| is_it(row.spent));
        rows.map(|row| NotSeen { budget: place, spent: row.spent, ns: row.ns }).collect::<Vec<_>>()
    };
    let work = budgets.iter().enumerate().filter(|(_, budget)| is_work(budget));
    work.flat_map(of_budget).collect()
}

/// Whether it is known when a backend computes: of some there are only the calls that start work.
pub(super) fn is_seen(scene: &Scene<'_>, backend: BackendIndex) -> bool {
    let events = &scene.trace.events;
    let is_its = |kind, of| kind == EventKind::Op && of == backend;
    let mut stretches = events.stretches().filter(|(it, _)| is_its(it.kind, it.backend));
    !stretches.any(|(_, ops)| events.measured_of(ops).contains(&Measured::HostCall))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{explain, parse, tokens};

    #[test]
    fn what_a_device_without_times_takes() {
        let not_seen = |measured: &str| {
            let ops = format!(
                "op GPU SPLIT 0..200 - run=@ measured={measured}
                 op CPU GET_ROWS 900..1000 embd run=@ split=1
                 wait 200..800 run=@"
            );
            let explained = explain(&parse(&tokens(3, 1000, 1000, &ops)));
            explained.not_seen.iter().map(|it| (it.spent, it.ns)).collect::<Vec<_>>()
        };
        let waiting = (Spent::WaitingForDevice, 1800);
        let launching = (Spent::Launching { backend: BackendIndex(0) }, 600);
        assert_eq!(not_seen("host_call"), [waiting, launching]);
        assert_eq!(not_seen("device"), [waiting]);
    }
}
