//! What makes a phase slower than it could be, ranked by what it costs. One rule a file.
//!
//! A rule looks at the budget of a phase and at what was tallied of it, and gives back what it found
//! with the time that would be saved. Words are the report's business.

mod bubbles;
mod copied;
mod copied_weights;
mod depth;
mod device_times;
mod draft;
mod exposed_copies;
mod first_use;
mod host_ops;
mod large_rows;
mod launches;
mod limit;
mod not_seen;
mod program;
mod prompt_again;
mod remote;
mod scene;
mod slow_clock;
mod slow_copies;
mod slower_device;
mod small_batches;
mod splits;
#[cfg(test)]
mod staged;
mod threads;
mod throttled;
mod what_if;
mod what_if_threads;

use crate::budget::{Budget, Divided, summed};
use crate::layers::Places;
use crate::node_sums::NodeSums;
use crate::peaks::Peaks;
use crate::phases::{PhaseKind, Phases};
use ggprof_trace::Trace;
use scene::Scene;
use std::cmp::Reverse;

pub use bubbles::{Bubbles, BusyDevice};
pub use copied::CopiedGroup;
pub use copied_weights::CopiedWeights;
pub use depth::{DepthPoint, GrowingAttention};
pub use draft::Draft;
pub use exposed_copies::ExposedCopies;
pub use first_use::FirstUse;
pub use host_ops::{HostOp, HostOps, WhichHostOps};
pub use large_rows::LargeRow;
pub use launches::{GraphsOff, SmallKernels, WhyNoGraphs};
pub use limit::Rate;
pub use not_seen::NotSeen;
pub use program::Program;
pub use prompt_again::PromptAgain;
pub use remote::{GraphSentAgain, RoundTrips, SlowServer};
pub use slow_clock::{ClockShown, SlowClock};
pub use slow_copies::{RateFrom, SlowCopies};
pub use slower_device::SlowerDevice;
pub use small_batches::SmallBatches;
pub use splits::ManySplits;
pub use threads::{Barriers, TooManyThreads, UnequalThreads};
pub use throttled::Throttled;
pub use what_if::{LayerCosts, LayerEstimate};
pub use what_if_threads::ThreadEstimate;

/// From this part of a phase's wall time on, something found is worth a change.
pub const LEAST_SHARE: f64 = 0.05;

/// A rule, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rule(pub u8);

/// Something that takes time in a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub rule: Rule,
    /// Whose phase, as a place among the budgets.
    pub budget: usize,
    /// What would be saved of the phase's wall time.
    pub cost_ns: u64,
    /// The cost follows from a comparison, not from a measurement alone.
    pub is_estimate: bool,
    pub certainty: Certainty,
    pub what: What,
}

/// With the evidence; each rule has a struct for its own.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    HostOps(HostOps),
    ManySplits(ManySplits),
    ExposedCopies(ExposedCopies),
    SlowCopies(SlowCopies),
    CopiedWeights(CopiedWeights),
    Program(Program),
    Barriers(Barriers),
    UnequalThreads(UnequalThreads),
    TooManyThreads(TooManyThreads),
    SmallKernels(SmallKernels),
    GraphsOff(GraphsOff),
    PromptAgain(PromptAgain),
    Depth(GrowingAttention),
    Draft(Draft),
    SlowClock(SlowClock),
    FirstUse(FirstUse),
    Bubbles(Bubbles),
    SmallBatches(SmallBatches),
    RoundTrips(RoundTrips),
    GraphSentAgain(GraphSentAgain),
    SlowServer(SlowServer),
    SlowerDevice(SlowerDevice),
    Throttled(Throttled),
    LargeRow(LargeRow),
}

/// How certain it is that a change of what was found brings the time back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// The recording says so.
    Certain,
    /// All that was recorded fits, and other reasons are rare.
    Likely,
    /// It is worth trying.
    Possible,
}

/// What a recording tells of itself.
#[derive(Debug)]
pub struct Explained {
    /// Of the phases, repetitions together.
    pub budgets: Vec<Budget>,
    /// The most expensive first; what happens only once counts a quarter there, and what has no known reason
    /// comes last.
    pub findings: Vec<Finding>,
    /// Large parts of phases of which nobody knows what they went to.
    pub not_seen: Vec<NotSeen>,
    /// How far phases are from what their devices can do.
    pub rates: Vec<Rate>,
    /// Of phases whose layers are divided between the host and a device.
    pub layer_costs: Vec<LayerCosts>,
    /// Of phases that the host computes on a machine that was measured.
    pub thread_estimates: Vec<ThreadEstimate>,
}

impl Explained {
    /// Those that a change is worth for.
    pub fn worth_a_change(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| self.share(finding) >= LEAST_SHARE)
    }

    /// The part of its phase that it costs.
    pub fn share(&self, finding: &Finding) -> f64 {
        self.budgets[finding.budget].share(finding.cost_ns)
    }
}

type Find = fn(&Scene<'_>, usize, &Budget) -> Vec<Finding>;

const RULES: &[Find] = &[
    host_ops::find,
    splits::find,
    exposed_copies::find,
    slow_copies::find,
    copied_weights::find,
    program::find,
    threads::find,
    launches::find,
    prompt_again::find,
    depth::find,
    draft::find,
    slow_clock::find,
    first_use::find,
    bubbles::find,
    small_batches::find,
    remote::find,
    slower_device::find,
    throttled::find,
];

/// What a rule finds may be part of what another one finds: the first of each pair goes where the
/// second one is more expensive, in the same phase.
const PART_OF: &[(Rule, Rule)] = &[
    (splits::RULE, host_ops::RULE),
    // The scheduler begins a new split at each weight that it has to copy.
    (splits::RULE, copied_weights::RULE),
    (exposed_copies::RULE, copied_weights::RULE),
    (exposed_copies::RULE, slow_copies::RULE),
    (exposed_copies::RULE, host_ops::RULE),
    (slow_copies::RULE, copied_weights::RULE),
    (launches::SMALL_KERNELS, host_ops::RULE),
    (launches::SMALL_KERNELS, copied_weights::RULE),
    (launches::GRAPHS_OFF, host_ops::RULE),
    (threads::BARRIERS, host_ops::RULE),
    (threads::UNEQUAL, host_ops::RULE),
    (threads::TOO_MANY, threads::BARRIERS),
    (threads::TOO_MANY, threads::UNEQUAL),
    (threads::TOO_MANY, host_ops::RULE),
    (bubbles::RULE, host_ops::RULE),
    (remote::SENT_AGAIN, remote::ROUND_TRIPS),
    (exposed_copies::RULE, remote::ROUND_TRIPS),
    (host_ops::RULE, slower_device::RULE),
    (splits::RULE, slower_device::RULE),
    (launches::SMALL_KERNELS, slower_device::RULE),
    // Threads that are let run wait for those that are not.
    (threads::BARRIERS, throttled::RULE),
    (threads::UNEQUAL, throttled::RULE),
    (threads::TOO_MANY, throttled::RULE),
];

/// `sums` are those [`by budget`](NodeSums::by_budget).
pub fn explained(
    trace: &Trace,
    phases: &Phases,
    places: &Places,
    sums: &NodeSums,
    divided: &Divided,
    peaks: Option<&Peaks>,
) -> Explained {
    let budgets = summed(phases, &divided.budgets);
    let scene = Scene::new(trace, phases, places, sums, &budgets, &divided.exposed, peaks);
    let mut findings: Vec<Finding> = Vec::new();
    for (place, budget) in budgets.iter().enumerate().filter(|(_, budget)| is_work(budget)) {
        findings.extend(RULES.iter().flat_map(|find| find(&scene, place, budget)));
    }
    findings.retain(|finding| finding.cost_ns > 0);
    leave_parts_out(&mut findings);
    findings.extend(large_rows(&scene, &findings));
    findings.sort_by_key(rank);
    let rates = limit::rates(&scene, &budgets);
    let layer_costs = what_if::layer_costs(&scene, &budgets);
    let thread_estimates = what_if_threads::thread_estimates(&scene, &budgets);
    let not_seen = not_seen::not_seen(&scene, &budgets);
    Explained { budgets, findings, not_seen, rates, layer_costs, thread_estimates }
}

/// What is left when all other rules have told what they know.
fn large_rows(scene: &Scene<'_>, findings: &[Finding]) -> Vec<Finding> {
    let of_budget = |(place, budget): (usize, &Budget)| {
        let others: Vec<&Finding> = findings.iter().filter(|it| it.budget == place).collect();
        large_rows::find(scene, place, budget, &others)
    };
    let work = scene.budgets.iter().enumerate().filter(|(_, budget)| is_work(budget));
    work.flat_map(of_budget).collect()
}

/// Of findings that cost as much, the first phase's first, and of one phase in the order of the rules.
fn rank(finding: &Finding) -> (bool, Reverse<u64>, usize, Rule) {
    let is_unexplained = finding.rule == large_rows::RULE;
    (is_unexplained, Reverse(weight(finding)), finding.budget, finding.rule)
}

/// What findings are ranked by. What happens once is paid off as a program goes on, so it comes behind what
/// costs a good part of it again and again.
fn weight(finding: &Finding) -> u64 {
    const ONCE: u64 = 4;
    if finding.rule == first_use::RULE { finding.cost_ns / ONCE } else { finding.cost_ns }
}

fn is_work(budget: &Budget) -> bool {
    budget.kind != PhaseKind::WarmUp && budget.wall_ns > 0
}

fn leave_parts_out(findings: &mut Vec<Finding>) {
    let all = findings.clone();
    findings.retain(|finding| {
        let is_part_of = |other: &Finding| {
            other.budget == finding.budget
                && other.cost_ns >= finding.cost_ns
                && PART_OF.contains(&(finding.rule, other.rule))
        };
        !all.iter().any(is_part_of)
    });
}
