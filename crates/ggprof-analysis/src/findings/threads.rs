//! R7, R8, R9: threads of the host that wait for each other, because there is little to share, because
//! one of them is slower, or because there are too many of them.

use super::scene::{OpKey, Scene, Tally};
use super::{Certainty, Finding, Rule, What};
use crate::budget::{Budget, Spent};
use crate::peaks::CpuPeaks;
use crate::phases::PhaseKind;
use crate::processors::{processors_of_others, usable_processors};
use ggprof_ggml::is_matrix_product;
use ggprof_trace::StringId;
use hashbrown::HashMap;

#[derive(Debug, Clone, PartialEq)]
pub struct Barriers {
    pub threads: u32,
    /// So many would take least.
    pub fewer: u32,
    pub between_ns: u64,
    pub in_ops_ns: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct UnequalThreads {
    pub threads: u32,
    pub worst: StringId,
    pub worst_share: f64,
    /// Processors that other programs used, if that left too few.
    pub others: Option<f64>,
}

/// More threads than processors, or than the memory can feed.
#[derive(Debug, Clone, PartialEq)]
pub struct TooManyThreads {
    pub threads: u32,
    pub processors: Option<u32>,
    /// Fewer than the processors, if those are told.
    pub knee: Option<u32>,
}

pub(super) const BARRIERS: Rule = Rule(7);
pub(super) const UNEQUAL: Rule = Rule(8);
pub(super) const TOO_MANY: Rule = Rule(9);

/// Of the phase's wall time, at barriers or in ops that one thread computes.
const LEAST_BARRIERS: f64 = 0.2;
/// Processors that others use.
const BUSY_OTHERS: f64 = 0.3;
/// The same in ops that all threads share evenly, if they get the same time.
const LEAST_UNEQUAL: f64 = 0.15;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let tally = &scene.tallies[place];
    let threads = tally.threads;
    if threads < 2 {
        return Vec::new();
    }
    let between_ns = budget.sum(|spent| spent == Spent::Barriers);
    let in_ops_ns = budget.sum(|spent| spent == Spent::UnequalThreads);
    let lost_ns = between_ns + in_ops_ns;
    let finding = |rule: Rule, cost_ns: u64, certainty: Certainty, what: What| Finding {
        rule,
        budget: place,
        cost_ns,
        is_estimate: true,
        certainty,
        what,
    };
    let process = scene.process_of(budget);
    let others = processors_of_others(scene.trace, process, &spans(scene, budget));
    let processors = processors(scene, budget);
    // While processors are idle, others take none away.
    let needed = |others: f64| f64::from(threads) + others;
    let is_short = |others: f64| processors.is_none_or(|it| needed(others) > f64::from(it));
    let is_explained = others.is_some_and(|others| others >= BUSY_OTHERS && is_short(others));
    if let Some(most) = processors.filter(|&processors| threads > processors) {
        // It is the machine's, of which the program may use a part.
        let knee = knee(scene, budget).filter(|&knee| knee < most);
        let what = What::TooManyThreads(TooManyThreads { threads, processors, knee });
        // The same work on fewer threads takes each of them longer.
        let more_ns = computing(scene, budget) * u64::from(threads - most) / u64::from(most.max(1));
        // Among busy programs, more threads may get more of the processors.
        let certainty = if is_explained { Certainty::Possible } else { Certainty::Certain };
        return vec![finding(TOO_MANY, lost_ns.saturating_sub(more_ns), certainty, what)];
    }
    let mut found = Vec::new();
    // Reading weights is what generation does. Of what threads wait, those that are too many have their part.
    let knee = knee(scene, budget).filter(|&knee| knee < threads && !is_explained);
    if let Some(knee) = knee.filter(|_| budget.kind == PhaseKind::Generation) {
        let cost_ns = lost_ns * u64::from(threads - knee) / u64::from(threads);
        let what =
            What::TooManyThreads(TooManyThreads { threads, processors: None, knee: Some(knee) });
        found.push(finding(TOO_MANY, cost_ns, Certainty::Possible, what));
    }
    let shared = Shared::of(scene, tally);
    // Where others take processors away, it is they who keep threads waiting, in whatever op.
    let unequal_ns = if is_explained { in_ops_ns } else { shared.unequal_ns.min(in_ops_ns) };
    let rest_ns = lost_ns - unequal_ns;
    if let Some((worst, worst_share)) = shared.worst
        && budget.share(unequal_ns) >= LEAST_UNEQUAL
    {
        let certainty = if is_explained { Certainty::Certain } else { Certainty::Possible };
        let others = others.filter(|_| is_explained);
        let what = What::UnequalThreads(UnequalThreads { threads, worst, worst_share, others });
        found.push(finding(UNEQUAL, unequal_ns, certainty, what));
    }
    if budget.share(rest_ns) >= LEAST_BARRIERS {
        let in_ops_ns = in_ops_ns - unequal_ns;
        let (fewer, saved_ns) = fewer(threads, between_ns, in_ops_ns, computing(scene, budget));
        let what = What::Barriers(Barriers { threads, fewer, between_ns, in_ops_ns });
        found.push(finding(BARRIERS, saved_ns, Certainty::Likely, what));
    }
    found
}

/// How many threads would take least, and how much less than now. A thread alone meets no barrier; what one
/// thread computes takes as long as before; and what is shared takes longer, the fewer share it.
fn fewer(threads: u32, between_ns: u64, in_ops_ns: u64, computing_ns: u64) -> (u32, u64) {
    let all = f64::from(threads);
    let saved = |fewer: u32| {
        let left = f64::from(fewer);
        let barriers = between_ns as f64 * (1.0 - (left - 1.0) / (all - 1.0));
        let alone = in_ops_ns as f64 * (1.0 - all * (left - 1.0) / ((all - 1.0) * left));
        let longer = computing_ns as f64 * (all / left - 1.0);
        (fewer, (barriers + alone - longer).max(0.0) as u64)
    };
    (1..threads).map(saved).max_by_key(|(_, saved_ns)| *saved_ns).unwrap_or((threads, 0))
}

/// What the host computes, on average of its threads.
fn computing(scene: &Scene<'_>, budget: &Budget) -> u64 {
    budget.sum(|spent| match spent {
        Spent::Computing { backend, .. } => scene.is_of_host(backend),
        _ => false,
    })
}

fn spans(scene: &Scene<'_>, budget: &Budget) -> Vec<(u64, u64)> {
    let phases = budget.phases.iter().map(|&phase| &scene.phases.phases[phase as usize]);
    phases.map(|phase| (phase.start_ns, phase.end_ns)).collect()
}

/// As the launcher saw it, or as the machine was measured.
fn processors(scene: &Scene<'_>, budget: &Budget) -> Option<u32> {
    let process = scene.process_of(budget);
    let usable = usable_processors(scene.trace, process, &spans(scene, budget));
    usable.or(measured(scene, budget).map(|cpu| cpu.processors))
}

fn knee(scene: &Scene<'_>, budget: &Budget) -> Option<u32> {
    measured(scene, budget)?.knee().map(|rate| rate.threads)
}

fn measured<'s>(scene: &Scene<'s>, budget: &Budget) -> Option<&'s CpuPeaks> {
    scene.peaks?.cpu_of(scene.trace, scene.process_of(budget))
}

/// Ops whose work ggml divides evenly among all threads.
struct Shared {
    unequal_ns: u64,
    /// The op that lost most, and which part of its time.
    worst: Option<(StringId, f64)>,
}

impl Shared {
    fn of(scene: &Scene<'_>, tally: &Tally) -> Self {
        let mut by_op: HashMap<StringId, (u64, u64)> = HashMap::new();
        for (key, sum) in &tally.ops {
            if is_shared(scene, key) {
                let entry = by_op.entry(scene.signature(key).op).or_default();
                *entry = (entry.0 + sum.unequal_ns, entry.1 + sum.ns);
            }
        }
        let worst =
            by_op.iter().max_by_key(|(op, (unequal_ns, _))| (*unequal_ns, scene.trace.text(**op)));
        Self {
            unequal_ns: by_op.values().map(|(unequal_ns, _)| unequal_ns).sum(),
            worst: worst
                .map(|(op, (unequal_ns, ns))| (*op, *unequal_ns as f64 / (*ns).max(1) as f64)),
        }
    }
}

fn is_shared(scene: &Scene<'_>, key: &OpKey) -> bool {
    is_matrix_product(scene.op(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, explain_on, found, found_in, parse, tokens};
    use crate::peaks::{CpuPeaks, Peaks, ReadRate};
    use ggprof_trace::{Quantity, Sensor, text_fixture};

    fn with_threads(op: &str, fold: &str) -> String {
        tokens(3, 1000, 1000, &format!("op CPU {op} 0..1000 Qcur-0 run=@ threads={fold}"))
    }

    #[test]
    fn one_thread_is_slower() {
        let unequal = with_threads("MUL_MAT", "4:2500:1000:1500");
        let equal = with_threads("MUL_MAT", "4:3900:1000:100");
        let found = check(UNEQUAL, &unequal, 3 * 375, &equal);
        let What::UnequalThreads(UnequalThreads { threads, worst_share, .. }) = found.what else {
            panic!()
        };
        assert_eq!((threads, worst_share), (4, 0.375));
    }

    /// Two threads that work for a tenth of the time.
    #[test]
    fn barriers_that_take_longer_than_the_work() {
        let every = |ns: u64| {
            let op = |at: u64| {
                let (start, end) = (at * ns, at * ns + 10);
                format!("op CPU ADD {start}..{end} x-{at} run=@ split=0 threads=2:20:10:0\n")
            };
            let ops: String = (0..10).map(op).collect();
            tokens(3, 10 * ns, 10 * ns, &ops)
        };
        // Nine gaps of 90 ns; one thread computes 100 ns more.
        let found = check(BARRIERS, &every(100), 3 * (9 * 90 - 100), &every(20));
        let What::Barriers(Barriers { fewer, .. }) = found.what else { panic!() };
        assert_eq!(fewer, 1);
    }

    fn is_of_threads(finding: &Finding) -> bool {
        [BARRIERS, UNEQUAL, TOO_MANY].contains(&finding.rule)
    }

    /// What one thread computes is no faster with fewer of them.
    #[test]
    fn nothing_to_share() {
        let found = found(&with_threads("SOFT_MAX", "4:1000:1000:3000"));
        assert!(!found.iter().any(is_of_threads), "{found:?}");
    }

    /// A machine on which so many threads as there are rates read fastest.
    fn machine(rates: &[f64]) -> Peaks {
        let read =
            (1..).zip(rates).map(|(threads, &bytes_per_s)| ReadRate { threads, bytes_per_s });
        let (name, compute) = (String::new(), Vec::new());
        let cpu = CpuPeaks { name, processors: 4, read: read.collect(), compute };
        Peaks { version: 1, measured_at_unix_s: 0, cpu, devices: Vec::new() }
    }

    /// The machine's memory could feed more threads than the program has processors.
    #[test]
    fn no_more_threads_than_processors_are_advised() {
        let mut trace = parse(&with_threads("MUL_MAT", "4:1000:400:3000"));
        trace.sensors.push(sensor(Quantity::UsableProcessors, [2; 2]));
        let advised = |rates: &[f64]| {
            let explained = explain_on(&trace, Some(&machine(rates)));
            let What::TooManyThreads(found) = &explained.findings[0].what else { panic!() };
            (found.processors, found.knee)
        };
        assert_eq!(advised(&[5.0, 10.0, 15.0, 20.0]), (Some(2), None));
        assert_eq!(advised(&[19.0, 19.0, 19.0, 20.0]), (Some(2), Some(1)));
    }

    /// Two threads read as fast as four, which wait for a tenth of the time.
    #[test]
    fn more_threads_than_reading_profits_from() {
        let trace = parse(&with_threads("MUL_MAT", "4:3600:1000:400"));
        let rules = |rates: &[f64]| {
            let explained = explain_on(&trace, Some(&machine(rates)));
            let found = explained.worth_a_change().filter(|it| is_of_threads(it));
            found.map(|it| (it.rule, it.cost_ns, it.certainty)).collect::<Vec<_>>()
        };
        assert_eq!(rules(&[10.0, 19.0, 19.5, 20.0]), [(TOO_MANY, 3 * 50, Certainty::Possible)]);
        assert_eq!(rules(&[5.0, 10.0, 15.0, 20.0]), []);
    }

    /// Read at the begin of some tokens and at their end.
    fn sensor(quantity: Quantity, values: [u64; 2]) -> Sensor {
        text_fixture::sensor(quantity, 0, 3000, &values)
    }

    /// Others use one processor.
    #[test]
    fn neighbours_take_what_is_needed() {
        let certainty = |processors: u64| {
            let mut trace = parse(&with_threads("MUL_MAT", "4:2500:1000:1500"));
            trace.sensors = vec![
                sensor(Quantity::UsableProcessors, [processors; 2]),
                sensor(Quantity::MachineTime, [0, 15]),
                sensor(Quantity::ProgramTime, [0, 12]),
            ];
            let first = found_in(&trace).remove(0);
            assert_eq!(first.rule, UNEQUAL);
            first.certainty
        };
        assert_eq!(certainty(4), Certainty::Certain);
        assert_eq!(certainty(8), Certainty::Possible);
    }

    #[test]
    fn more_threads_than_processors() {
        let mut trace = parse(&with_threads("MUL_MAT", "4:1000:400:3000"));
        trace.sensors.push(sensor(Quantity::UsableProcessors, [2; 2]));
        // 250 ns of work on four threads are 500 ns on two.
        let first = &found_in(&trace)[0];
        assert_eq!((first.rule, first.cost_ns), (TOO_MANY, 3 * (750 - 250)));
        trace.sensors[0].values = vec![4; 2];
        assert_eq!(found_in(&trace)[0].rule, UNEQUAL);
    }
}
