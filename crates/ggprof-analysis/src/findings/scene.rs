//! What rules look at: a recording, and what was tallied of each group of phases in one pass.

use super::copied::{CopiedGroup, copies};
use crate::attention::{cells_of, step_of};
use crate::budget::{Budget, ModelPart, budget_of_phase, is_of_host};
use crate::estimates::{Estimate, estimates_by};
use crate::layers::{Layer, Module, Place, Places};
use crate::node_sums::{NodeSums, OfNode};
use crate::peaks::Peaks;
use crate::phases::Phases;
use crate::work::Work;
use ggprof_trace::{
    BackendIndex, DeviceWork, Event, EventId, EventKind, GraphRunId, NodeId, ProcessIndex,
    RemoteLink, Signature, SignatureId, Trace,
};
use hashbrown::{HashMap, HashSet};
use std::cell::OnceCell;
use std::collections::BTreeMap;

pub(super) struct Scene<'a> {
    pub(super) trace: &'a Trace,
    pub(super) phases: &'a Phases,
    /// What the machine can do, where that was measured.
    pub(super) peaks: Option<&'a Peaks>,
    pub(super) budgets: &'a [Budget],
    /// One for each budget.
    pub(super) tallies: Vec<Tally>,
    pub(super) copies: Vec<CopiedGroup>,
    unseen: OnceCell<Unseen>,
}

/// By budget, backend and op: calls in splits that were timed as a whole, which take and move as much as in
/// those whose ops are known. It is worked out when a rule asks.
type Unseen = HashMap<(usize, BackendIndex, SignatureId), Estimate>;

/// What the events of a group of phases come to.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) ops: HashMap<OpKey, OpSum>,
    /// Distinct splits, over all graph runs.
    pub(super) splits: u64,
    /// In how many graph runs ops of each backend were seen one by one.
    pub(super) seen_runs: HashMap<BackendIndex, u64>,
    pub(super) threads: u32,
    /// By the cells of the cache that attention looked at.
    pub(super) depths: BTreeMap<u64, AtDepth>,
    /// Of each graph run with kernels: what a device waited between two of them, on average.
    pub(super) gaps_ns: Vec<u64>,
}

/// Graph runs whose attention looked at as many cells of the cache.
#[derive(Default)]
pub(super) struct AtDepth {
    /// The times of each of their ops that depend on the cells.
    pub(super) attention: HashMap<SignatureId, Vec<u64>>,
    /// What all other ops of each run took.
    pub(super) rest: Vec<u64>,
}

/// Ops that are the same but for when they ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct OpKey {
    pub(super) backend: BackendIndex,
    pub(super) signature: SignatureId,
    pub(super) layer: Option<Layer>,
    pub(super) module: Module,
}

impl OpKey {
    pub(super) fn part(&self) -> ModelPart {
        ModelPart::of(self.module)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct OpSum {
    pub(super) count: u64,
    pub(super) ns: u64,
    /// What its threads waited for each other in it, on average.
    pub(super) unequal_ns: u64,
    /// Kernels of a device.
    pub(super) kernels: u64,
    pub(super) example: EventId,
}

impl<'a> Scene<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        phases: &'a Phases,
        places: &Places,
        sums: &NodeSums,
        budgets: &'a [Budget],
        exposed: &[(EventId, u64)],
        peaks: Option<&'a Peaks>,
    ) -> Self {
        let budget_of_phase = budget_of_phase(phases);
        let budget_of_run = |run: Option<GraphRunId>| {
            let phase = phases.phase_of_run.get(run?.0 as usize)?;
            Some(budget_of_phase[*phase as usize] as usize)
        };
        let budget_of = |event: &Event| budget_of_run(event.graph_run);
        let mut pieces: HashMap<EventId, u64> = HashMap::new();
        for (event, ns) in exposed {
            *pieces.entry(*event).or_default() += ns;
        }
        let copies = copies(trace, budget_of, &pieces);
        let tallies = tallies(trace, places, sums, budgets.len(), budget_of_run);
        let unseen = OnceCell::new();
        Self { trace, phases, peaks, budgets, tallies, copies, unseen }
    }

    /// Ops of a group of phases that are known by samples only, and what they are estimated to come to. A
    /// split among them stands for the time that was given to its ops.
    pub(super) fn unseen_in(
        &self,
        place: usize,
    ) -> impl Iterator<Item = (BackendIndex, SignatureId, &Estimate)> {
        let all = self.unseen.get_or_init(|| unseen(self.trace, self.phases)).iter();
        let of_it = all.filter(move |((of, ..), _)| *of == place);
        of_it.map(|((_, backend, signature), estimate)| (*backend, *signature, estimate))
    }

    pub(super) fn op(&self, key: &OpKey) -> &'a str {
        self.trace.text(self.signature(key).op)
    }

    pub(super) fn signature(&self, key: &OpKey) -> &'a Signature {
        self.trace.nodes.signature(key.signature)
    }

    pub(super) fn work(&self, key: &OpKey) -> Work {
        crate::work::work_of(self.trace, self.signature(key))
    }

    /// A server's processor is a device to its client.
    pub(super) fn is_of_host(&self, backend: BackendIndex) -> bool {
        is_of_host(self.trace, backend) && !self.trace.is_of_server(backend)
    }

    /// Whose phases a budget is of, in a trace that was made of several recordings.
    pub(super) fn process_of(&self, budget: &Budget) -> Option<ProcessIndex> {
        let &first = budget.phases.first()?;
        self.phases.phases[first as usize].process
    }

    /// Everything that can compute for a program besides its host, once.
    pub(super) fn devices_of(&self, budget: &Budget) -> impl Iterator<Item = BackendIndex> {
        let process = self.process_of(budget);
        let serves = move |server: Option<ProcessIndex>| {
            let is_it = |link: &RemoteLink| Some(link.server) == server;
            self.trace.remote_links.iter().any(|it| is_it(it) && Some(it.client) == process)
        };
        let is_its = move |backend: BackendIndex| {
            let owner = self.trace.backend(backend).process;
            owner == process || serves(owner)
        };
        let all =
            (0..self.trace.backends.len() as u16).map(BackendIndex).filter(move |&it| is_its(it));
        all.filter(|&it| !self.is_of_host(it) && !self.trace.stands_for_server(it))
    }

    /// The copies of a group of phases.
    pub(super) fn copies_of(&self, budget: usize) -> impl Iterator<Item = &CopiedGroup> {
        self.copies.iter().filter(move |row| row.budget == Some(budget))
    }
}

fn unseen(trace: &Trace, phases: &Phases) -> Unseen {
    let budget_of_phase = budget_of_phase(phases);
    estimates_by(trace, |event| {
        let phase = *phases.phase_of_run.get(event.graph_run?.0 as usize)?;
        let budget = budget_of_phase[phase as usize] as usize;
        event.is_op().then(|| (budget, event.backend, trace.node(event.node).signature))
    })
}

fn tallies(
    trace: &Trace,
    places: &Places,
    sums: &NodeSums,
    budgets: usize,
    budget_of: impl Fn(Option<GraphRunId>) -> Option<usize>,
) -> Vec<Tally> {
    let mut tallies: Vec<Tally> = Vec::new();
    tallies.resize_with(budgets, Tally::default);
    add_nodes(trace, places, sums, &mut tallies);
    add_elsewhere(trace, places, &budget_of, &mut tallies);
    count_splits(trace, &budget_of, &mut tallies);
    add_depths(trace, &budget_of, &mut tallies);
    add_gaps(trace, &budget_of, &mut tallies);
    tallies
}

/// Nodes whose ops are all in one place.
fn add_nodes(trace: &Trace, places: &Places, sums: &NodeSums, tallies: &mut [Tally]) {
    for OfNode { group, backend, node, sum, .. } in sums.iter() {
        let Some(group) = group else { continue };
        let tally = &mut tallies[group as usize];
        tally.threads = tally.threads.max(sum.threads);
        let Some(place) = places.of_node(node) else { continue };
        let sum = OpSum {
            count: sum.count,
            ns: sum.total_ns as u64,
            unequal_ns: sum.unequal_ns,
            kernels: sum.kernels,
            example: sum.first,
        };
        tally.add(OpKey::new(trace, backend, node, place), sum);
    }
}

/// Ops whose place depends on what was computed before them.
fn add_elsewhere(
    trace: &Trace,
    places: &Places,
    budget_of: impl Fn(Option<GraphRunId>) -> Option<usize>,
    tallies: &mut [Tally],
) {
    if trace.nodes.ids().all(|node| places.of_node(node).is_some()) {
        return;
    }
    for (stretch, events) in trace.events.stretches() {
        let budget = budget_of(stretch.graph_run).filter(|_| stretch.kind == EventKind::Op);
        let Some(tally) = budget.map(|budget| &mut tallies[budget]) else { continue };
        let nodes = events.clone().zip(trace.events.nodes_of(events));
        for (at, _) in nodes.filter(|(_, node)| places.of_node(**node).is_none()) {
            let event = trace.events.get(EventId(at));
            let unequal_ns = trace.events.busy_threads(event.id).map_or(0, |(threads, busy_ns)| {
                event.duration_ns.saturating_sub(busy_ns / u64::from(threads))
            });
            let sum = OpSum {
                count: 1,
                ns: event.charged_ns,
                unequal_ns,
                kernels: trace.work_for(event.id).len() as u64,
                example: event.id,
            };
            tally.add(OpKey::new(trace, event.backend, event.node, places.of(&event)), sum);
        }
    }
}

fn count_splits(
    trace: &Trace,
    budget_of: impl Fn(Option<GraphRunId>) -> Option<usize>,
    tallies: &mut [Tally],
) {
    let mut splits: HashSet<(u32, i32)> = HashSet::new();
    let mut seen: HashSet<(u32, BackendIndex)> = HashSet::new();
    for (stretch, events) in trace.events.stretches() {
        let budget = budget_of(stretch.graph_run);
        let Some((budget, run)) = budget.zip(stretch.graph_run) else { continue };
        tallies[budget].splits += u64::from(splits.insert((run.0, stretch.split)));
        let first = trace.events.nodes_of(events)[0];
        let is_told =
            stretch.kind == EventKind::Op && trace.op_name(first) != Signature::WHOLE_SPLIT;
        if is_told && seen.insert((run.0, stretch.backend)) {
            *tallies[budget].seen_runs.entry(stretch.backend).or_default() += 1;
        }
    }
}

/// What attention took in each graph run, by the cells that it looked at.
fn add_depths(
    trace: &Trace,
    budget_of: impl Fn(Option<GraphRunId>) -> Option<usize>,
    tallies: &mut [Tally],
) {
    let attends: Vec<u64> = trace.nodes.ids().map(|id| cells_of(trace, id).unwrap_or(0)).collect();
    let reads_cache: Vec<bool> = trace.nodes.ids().map(|id| step_of(trace, id).is_some()).collect();
    // Of each graph run: cells that are attended, and the time of what does not depend on them.
    let mut runs: Vec<(u64, u64)> = vec![(0, 0); trace.graph_runs.len()];
    let mut attention: Vec<(GraphRunId, SignatureId, u64)> = Vec::new();
    for (stretch, events) in trace.events.stretches() {
        let run = stretch.graph_run.filter(|_| stretch.kind == EventKind::Op);
        let of_run = run.and_then(|run| Some((run, runs.get_mut(run.0 as usize)?)));
        let Some((run, (cells, rest_ns))) = of_run else { continue };
        let nodes = trace.events.nodes_of(events.clone()).iter();
        for (node, ns) in nodes.zip(trace.events.charges_of(events)) {
            let at = node.0 as usize;
            *cells = (*cells).max(attends[at]);
            match reads_cache[at] {
                true => attention.push((run, trace.node(*node).signature, ns)),
                false => *rest_ns += ns,
            }
        }
    }
    let of_run = |run: GraphRunId| {
        let (cells, rest_ns) = runs[run.0 as usize];
        Some((budget_of(Some(run))?, cells, rest_ns)).filter(|_| cells > 0)
    };
    for (run, signature, ns) in attention {
        if let Some((budget, cells, _)) = of_run(run) {
            let depth = tallies[budget].depths.entry(cells).or_default();
            depth.attention.entry(signature).or_default().push(ns);
        }
    }
    for (budget, cells, rest_ns) in (0..runs.len() as u32).filter_map(|run| of_run(GraphRunId(run)))
    {
        tallies[budget].depths.entry(cells).or_default().rest.push(rest_ns);
    }
}

/// What devices waited between two kernels.
fn add_gaps(
    trace: &Trace,
    budget_of: impl Fn(Option<GraphRunId>) -> Option<usize>,
    tallies: &mut [Tally],
) {
    let mut launched: Vec<Launched> = vec![Launched::default(); trace.graph_runs.len()];
    for work in &trace.device_work {
        let event = trace.events.get(work.event);
        let run = event.graph_run.filter(|_| event.is_op());
        if let Some(launched) = run.and_then(|run| launched.get_mut(run.0 as usize)) {
            launched.add(work);
        }
    }
    for (run, launched) in (0..).zip(launched) {
        if let Some((budget, gap_ns)) = budget_of(Some(GraphRunId(run))).zip(launched.gap_ns()) {
            tallies[budget].gaps_ns.push(gap_ns);
        }
    }
}

/// The kernels of a graph run.
#[derive(Debug, Clone, Copy, Default)]
struct Launched {
    kernels: u64,
    first_ns: u64,
    last_ns: u64,
    busy_ns: u64,
}

impl Launched {
    fn add(&mut self, work: &DeviceWork) {
        let end_ns = work.start_ns.saturating_add(work.duration_ns);
        self.first_ns =
            if self.kernels == 0 { work.start_ns } else { self.first_ns.min(work.start_ns) };
        self.last_ns = self.last_ns.max(end_ns);
        self.busy_ns += work.charged_ns;
        self.kernels += 1;
    }

    fn gap_ns(&self) -> Option<u64> {
        let idle_ns = (self.last_ns - self.first_ns).saturating_sub(self.busy_ns);
        (self.kernels > 1).then(|| idle_ns / (self.kernels - 1))
    }
}

impl OpKey {
    fn new(trace: &Trace, backend: BackendIndex, node: NodeId, place: Place) -> Self {
        let signature = trace.node(node).signature;
        Self { backend, signature, layer: place.layer, module: place.module }
    }
}

impl Tally {
    fn add(&mut self, key: OpKey, sum: OpSum) {
        let nothing = OpSum { count: 0, ns: 0, unequal_ns: 0, kernels: 0, example: sum.example };
        let whole = self.ops.entry(key).or_insert(nothing);
        whole.count += sum.count;
        whole.ns += sum.ns;
        whole.unequal_ns += sum.unequal_ns;
        whole.kernels += sum.kernels;
        whole.example = whole.example.min(sum.example);
    }
}
