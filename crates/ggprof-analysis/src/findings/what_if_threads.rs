//! What a token would take with as many threads as reading memory profits from, on a machine that was measured.
//! Generation reads all weights for each token, so that is what its products are bound by.

use super::scene::Scene;
use crate::budget::{Budget, Spent};
use crate::phases::PhaseKind;
use crate::processors::usable_processors;

/// A phase that the host computes with another number of threads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThreadEstimate {
    pub budget: usize,
    pub threads: u32,
    /// From so many on, reading gets no faster; or all that the program may use, if those are fewer.
    pub advised: u32,
    /// How fast so many threads of the machine read, in GB/s: now and with the others.
    pub gb_per_s: (f64, f64),
    /// Of a unit of the phase, with the others.
    pub ns: u64,
}

pub(super) fn thread_estimates(scene: &Scene<'_>, budgets: &[Budget]) -> Vec<ThreadEstimate> {
    let of_budget = |(place, budget): (usize, &Budget)| of_budget(scene, place, budget);
    budgets.iter().enumerate().filter_map(of_budget).collect()
}

fn of_budget(scene: &Scene<'_>, place: usize, budget: &Budget) -> Option<ThreadEstimate> {
    let process = scene.process_of(budget);
    let cpu = scene.peaks?.cpu_of(scene.trace, process)?;
    let threads = scene.tallies[place].threads;
    if budget.kind != PhaseKind::Generation || threads == 0 {
        return None;
    }
    let spans = budget.phases.iter().map(|&phase| &scene.phases.phases[phase as usize]);
    let spans: Vec<(u64, u64)> = spans.map(|phase| (phase.start_ns, phase.end_ns)).collect();
    let usable = usable_processors(scene.trace, process, &spans).unwrap_or(cpu.processors);
    let advised = cpu.knee()?.threads.min(usable);
    let (now, then) = (cpu.read_with(threads)?, cpu.read_with(advised)?);
    let is_host = |spent| match spent {
        Spent::Computing { backend, .. } => scene.is_of_host(backend),
        _ => false,
    };
    let computing_ns = budget.sum(is_host) as f64;
    if advised == threads || computing_ns == 0.0 {
        return None;
    }
    // What threads wait for each other shrinks with those that are too many. More of them wait no less.
    let is_waiting = |spent| matches!(spent, Spent::Barriers | Spent::UnequalThreads);
    let too_many = f64::from(threads.saturating_sub(advised)) / f64::from(threads);
    let saved_ns = computing_ns * (1.0 - now / then) + budget.sum(is_waiting) as f64 * too_many;
    // Where most of a phase is elsewhere, nothing may be left to gain.
    if saved_ns <= 0.0 {
        return None;
    }
    let ns = (budget.wall_ns as f64 - saved_ns).max(0.0) / budget.units() as f64;
    let gb_per_s = (now / 1e9, then / 1e9);
    Some(ThreadEstimate { budget: place, threads, advised, gb_per_s, ns: ns as u64 })
}

#[cfg(test)]
mod tests {
    use crate::findings::staged::{explain_on, parse, tokens};
    use crate::peaks::{CpuPeaks, Peaks, ReadRate};

    /// Tokens of 1000 ns, of which threads wait for 400.
    fn estimate(threads: u32, rates: &[f64]) -> Option<(u32, u64)> {
        let busy = 600 * threads;
        let ops = format!("op CPU MUL_MAT 0..1000 Qcur-0 run=@ threads={threads}:{busy}:1000:0");
        let read =
            (1..).zip(rates).map(|(threads, &bytes_per_s)| ReadRate { threads, bytes_per_s });
        let (name, compute) = (String::new(), Vec::new());
        let cpu = CpuPeaks { name, processors: 4, read: read.collect(), compute };
        let peaks = Peaks { version: 1, measured_at_unix_s: 0, cpu, devices: Vec::new() };
        let explained = explain_on(&parse(&tokens(3, 1000, 1000, &ops)), Some(&peaks));
        explained.thread_estimates.first().map(|it| (it.advised, it.ns))
    }

    #[test]
    fn fewer_threads_that_read_as_fast_and_more_that_read_faster() {
        let rates = [10.0, 20.0, 20.0, 20.0];
        // Half of what four threads wait.
        assert_eq!(estimate(4, &rates), Some((2, 800)));
        // Half of what one thread computes.
        assert_eq!(estimate(1, &rates), Some((2, 700)));
        assert_eq!(estimate(2, &rates), None);
    }
}
