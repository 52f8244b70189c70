//! How the clocks of several recordings become one.

use super::CannotMerge;
use super::clock_line::ClockLine;
use crate::model::{DayClock, ProcessClock, Trace};
use hashbrown::HashMap;

/// Clocks of one machine since one start differ by less than this in what they say of the time of day.
const SAME_START_NS: u64 = 2_000_000;

/// A recording's anchors follow the time of day only so closely.
const ANCHORS_NS: u64 = 1_000_000;

/// How each recording's times become those of all.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockShift {
    /// To the clock of the process that it worked for.
    pub line: ClockLine,
    pub client: Option<usize>,
    /// From there to the clock of all.
    pub ns: u64,
    pub clock: ProcessClock,
    /// How far the times of day can be apart that it was brought over by.
    pub day_clock: DayClock,
    /// The same number for all recordings of one machine since one start of it.
    pub machine: u16,
}

impl ClockShift {
    fn by(machine: u16, ns: u64, clock: ProcessClock, day_clock: DayClock) -> Self {
        Self { line: ClockLine::SAME, client: None, ns, clock, day_clock, machine }
    }

    pub(super) fn ns(&self, ns: u64) -> u64 {
        self.line.ns(ns).saturating_add(self.ns)
    }
}

/// Servers were brought to the clocks of their clients, so the clock of all is not one of theirs.
pub(super) fn rebase(recordings: &[Trace], clocks: &mut [ClockShift]) -> Result<(), CannotMerge> {
    let client = |clock: &ClockShift| match clock.clock {
        ProcessClock::Exchanges { .. } => clock.client,
        _ => None,
    };
    let clients: Vec<Option<usize>> = clocks.iter().map(client).collect();
    if clients.iter().all(Option::is_none) {
        return Ok(());
    }
    let machines: Vec<u16> = clocks.iter().map(|clock| clock.machine).collect();
    let fresh = self::clocks(recordings, &machines, |at| clients[at].is_none())?;
    for (at, client) in clients.into_iter().enumerate() {
        match client {
            Some(client) => clocks[at].ns = fresh[client].ns,
            None => clocks[at] = fresh[at],
        }
    }
    Ok(())
}

/// What a recording says of its clocks.
struct Facts<'t> {
    cpu: &'t str,
    /// When the machine was started, by each of its anchors, and by the first.
    started: Vec<u64>,
    first: u64,
    day_clock: DayClock,
}

/// Where the time of day was set meanwhile, it was wrong by that before or after.
fn day_clock(said: DayClock, started: &[u64]) -> DayClock {
    let first = started.first().copied().unwrap_or(0);
    let set_ns = started.iter().map(|ns| ns.abs_diff(first)).max().unwrap_or(0);
    said.and(DayClock::Within(set_ns.saturating_add(ANCHORS_NS)))
}

impl Facts<'_> {
    fn is_of_same_machine(&self, other: &Self) -> bool {
        let is_near =
            |one: &u64| other.started.iter().any(|start| one.abs_diff(*start) < SAME_START_NS);
        self.cpu == other.cpu && self.started.iter().any(is_near)
    }
}

fn facts(recordings: &[Trace]) -> Result<Vec<Facts<'_>>, CannotMerge> {
    let mut facts = Vec::new();
    for (at, trace) in recordings.iter().enumerate() {
        let provenance = trace.provenance.as_ref().ok_or(CannotMerge::NoTimes(at))?;
        let anchors = &provenance.clock_anchors;
        let started: Vec<u64> = anchors.iter().map(|(ns, unix)| unix.saturating_sub(*ns)).collect();
        let first = *started.first().ok_or(CannotMerge::NoTimes(at))?;
        let day_clock = day_clock(provenance.day_clock, &started);
        facts.push(Facts { cpu: &provenance.cpu, started, first, day_clock });
    }
    Ok(facts)
}

/// The number of each recording's machine, in the order of their first recordings.
pub(super) fn machines(recordings: &[Trace]) -> Result<Vec<u16>, CannotMerge> {
    let facts = facts(recordings)?;
    let mut machines: Vec<usize> = Vec::new();
    for (at, fact) in facts.iter().enumerate() {
        let others = facts[..at].iter().zip(&machines);
        let same: Vec<usize> =
            others.filter(|(it, _)| fact.is_of_same_machine(it)).map(|(_, &of)| of).collect();
        // If the time of day was set meanwhile, this one may know what others had before and after.
        let machine = same.iter().copied().min().unwrap_or(at);
        machines.iter_mut().filter(|of| same.contains(of)).for_each(|of| *of = machine);
        machines.push(machine);
    }
    let mut numbers = machines.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let number = |of: &usize| numbers.partition_point(|number| number < of) as u16;
    Ok(machines.iter().map(number).collect())
}

/// The machine that was started first has the clock that all others are brought to, each as a whole.
pub(super) fn clocks(
    recordings: &[Trace],
    machines: &[u16],
    may_be_base: impl Fn(usize) -> bool,
) -> Result<Vec<ClockShift>, CannotMerge> {
    let facts = facts(recordings)?;
    let mut of_machine: HashMap<u16, &Facts<'_>> = HashMap::new();
    for (fact, &machine) in facts.iter().zip(machines) {
        let known = of_machine.entry(machine).or_insert(fact);
        if fact.first < known.first {
            *known = fact;
        }
    }
    let bases = machines.iter().enumerate().filter(|(at, _)| may_be_base(*at));
    let base = bases.map(|(_, &machine)| machine).min_by_key(|of| of_machine[of].first);
    let Some(base) = base else { return Ok(Vec::new()) };
    let shift = |&machine: &u16| {
        if machine == base {
            return ClockShift::by(machine, 0, ProcessClock::Shared, DayClock::NotAsked);
        }
        let (of, to) = (of_machine[&machine], of_machine[&base]);
        let ns = of.first.saturating_sub(to.first);
        ClockShift::by(machine, ns, ProcessClock::TimeOfDay, of.day_clock.and(to.day_clock))
    };
    Ok(machines.iter().map(shift).collect())
}
