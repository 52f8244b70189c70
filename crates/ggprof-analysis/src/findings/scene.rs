//! What rules look at: a recording, and what was tallied of each group of phases in one pass.

use super::copied::{CopyRow, copies};
use crate::budget::{Budget, Part, is_of_host};
use crate::layers::{Layer, Module, Place, Places};
use crate::peaks::Peaks;
use crate::phases::Phases;
use crate::work::Work;
use ggprof_trace::{
    BackendIndex, DeviceWork, Event, EventId, EventKind, GraphRunId, NodeId, Signature,
    SignatureId, Tensor, Trace,
};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

pub(super) struct Scene<'a> {
    pub(super) trace: &'a Trace,
    pub(super) phases: &'a Phases,
    /// What the machine can do, where that was measured.
    pub(super) peaks: Option<&'a Peaks>,
    pub(super) budgets: &'a [Budget],
    /// One for each budget.
    pub(super) tallies: Vec<Tally>,
    pub(super) copies: Vec<CopyRow>,
}

/// What the events of a group of phases come to.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) ops: HashMap<OpKey, OpSum>,
    /// Distinct splits, over all graph runs.
    pub(super) splits: u64,
    pub(super) threads: u32,
    /// Time and number of runs by cells of the cache that attention looked at.
    pub(super) depths: BTreeMap<u64, (u64, u64)>,
    /// Of each graph run with kernels: what a device waited between two of them, on average.
    pub(super) gaps_ns: Vec<u64>,
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
    pub(super) fn part(&self) -> Part {
        Part::of(self.module)
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
        budgets: &'a [Budget],
        exposed: &[(EventId, u64)],
        peaks: Option<&'a Peaks>,
    ) -> Self {
        let budget_of_phase = budget_of_phase(phases, budgets);
        let budget_of_run = |run: Option<GraphRunId>| {
            let phase = phases.phase_of_run.get(run?.0 as usize)?;
            Some(budget_of_phase[*phase as usize])
        };
        let budget_of = |event: &Event| budget_of_run(event.graph_run);
        let mut pieces: HashMap<EventId, u64> = HashMap::new();
        for (event, ns) in exposed {
            *pieces.entry(*event).or_default() += ns;
        }
        let copies = copies(trace, budget_of, &pieces);
        let tallies = tallies(trace, places, budgets.len(), budget_of_run);
        Self { trace, phases, peaks, budgets, tallies, copies }
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

    /// Everything that can compute besides the host, once.
    pub(super) fn devices(&self) -> impl Iterator<Item = BackendIndex> {
        let all = (0..self.trace.backends.len() as u16).map(BackendIndex);
        all.filter(|&it| !self.is_of_host(it) && !self.trace.stands_for_server(it))
    }

    /// The copies of a group of phases.
    pub(super) fn copies_of(&self, budget: usize) -> impl Iterator<Item = &CopyRow> {
        self.copies.iter().filter(move |row| row.budget == Some(budget))
    }
}

fn budget_of_phase(phases: &Phases, budgets: &[Budget]) -> Vec<usize> {
    let mut of_phase = vec![0; phases.phases.len()];
    for (place, budget) in budgets.iter().enumerate() {
        budget.phases.iter().for_each(|&phase| of_phase[phase as usize] = place);
    }
    of_phase
}

fn tallies(
    trace: &Trace,
    places: &Places,
    budgets: usize,
    budget_of: impl Fn(Option<GraphRunId>) -> Option<usize>,
) -> Vec<Tally> {
    let mut tallies: Vec<Tally> = Vec::new();
    tallies.resize_with(budgets, Tally::default);
    let attends: Vec<Option<u64>> = trace.nodes.ids().map(|id| cells(trace, id)).collect();
    let reads_cache: Vec<bool> = trace.nodes.ids().map(|id| reads_cache(trace, id)).collect();
    // Of each graph run: cells that are attended, time of what depends on them.
    let mut attention: Vec<(u64, u64)> = vec![(0, 0); trace.graph_runs.len()];
    let mut splits: HashSet<(u32, i32)> = HashSet::new();
    let mut last_split = None;
    let mut budget_of_run: Vec<Option<usize>> = vec![None; trace.graph_runs.len()];
    let mut launched: Vec<Launched> = vec![Launched::default(); trace.graph_runs.len()];
    let mut sums = Sums::default();
    for (stretch, events) in trace.events.stretches() {
        let budget = budget_of(stretch.graph_run);
        let (Some(budget), Some(run)) = (budget, stretch.graph_run) else { continue };
        let tally = &mut tallies[budget];
        if last_split != Some((run.0, stretch.split)) {
            last_split = Some((run.0, stretch.split));
            tally.splits += u64::from(splits.insert((run.0, stretch.split)));
        }
        if stretch.kind != EventKind::Op {
            continue;
        }
        budget_of_run[run.0 as usize] = Some(budget);
        let of_run = &mut attention[run.0 as usize];
        sums.enter(trace, (budget, stretch.backend));
        for event in events.map(|at| trace.events.in_stretch(at, stretch)) {
            let own_work = trace.work_for(event.id);
            let node = event.node.0 as usize;
            of_run.0 = of_run.0.max(attends[node].unwrap_or(0));
            of_run.1 += if reads_cache[node] { event.charged_ns } else { 0 };
            launched[run.0 as usize].add(own_work);
            sums.add(trace, &event, places, own_work.len() as u64);
        }
    }
    sums.finish(trace, places, &mut tallies);
    for (budget, launched) in budget_of_run.iter().zip(&launched) {
        if let (Some(budget), Some(gap_ns)) = (budget, launched.gap_ns()) {
            tallies[*budget].gaps_ns.push(gap_ns);
        }
    }
    for (budget, (cells, ns)) in budget_of_run.into_iter().zip(attention) {
        if let Some(budget) = budget.filter(|_| cells > 0) {
            let sum = tallies[budget].depths.entry(cells).or_default();
            *sum = (sum.0 + ns, sum.1 + 1);
        }
    }
    tallies
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
    fn add(&mut self, work: &[DeviceWork]) {
        for it in work {
            let end_ns = it.start_ns.saturating_add(it.duration_ns);
            self.first_ns =
                if self.kernels == 0 { it.start_ns } else { self.first_ns.min(it.start_ns) };
            self.last_ns = self.last_ns.max(end_ns);
            self.busy_ns += it.charged_ns;
            self.kernels += 1;
        }
    }

    fn gap_ns(&self) -> Option<u64> {
        let idle_ns = (self.last_ns - self.first_ns).saturating_sub(self.busy_ns);
        (self.kernels > 1).then(|| idle_ns / (self.kernels - 1))
    }
}

/// A budget and a backend.
type Group = (usize, BackendIndex);
/// The sum of each node whose events are all in one place.
type NodeSums = Vec<Option<OpSum>>;

/// The ops of all tallies while they are added up.
#[derive(Default)]
struct Sums {
    of_node: HashMap<Group, NodeSums>,
    /// Of nodes whose place depends on the event.
    others: HashMap<(usize, OpKey), OpSum>,
    threads: HashMap<usize, u32>,
    /// What is being added to.
    current: Option<(Group, NodeSums)>,
}

impl Sums {
    /// What follows is of this budget and backend.
    fn enter(&mut self, trace: &Trace, group: Group) {
        if self.current.as_ref().is_some_and(|(current, _)| *current == group) {
            return;
        }
        self.of_node.extend(self.current.take());
        let sums = self.of_node.remove(&group);
        self.current = Some((group, sums.unwrap_or_else(|| vec![None; trace.nodes.len()])));
    }

    #[inline]
    fn add(&mut self, trace: &Trace, event: &Event, places: &Places, kernels: u64) {
        let Some((group, of_node)) = &mut self.current else { return };
        let first = OpSum { count: 0, ns: 0, unequal_ns: 0, kernels: 0, example: event.id };
        let sum = match places.of_node(event.node) {
            Some(_) => of_node[event.node.0 as usize].get_or_insert(first),
            None => {
                let key = OpKey::new(trace, event.backend, event.node, places.of(event.id));
                self.others.entry((group.0, key)).or_insert(first)
            }
        };
        sum.count += 1;
        sum.ns += event.charged_ns;
        sum.kernels += kernels;
        if let Some(fold) = trace.events.threads(event.id) {
            let most = self.threads.entry(group.0).or_default();
            *most = fold.threads.max(*most);
            let mean_ns = fold.busy_sum_ns / u64::from(fold.threads);
            sum.unequal_ns += event.duration_ns.saturating_sub(mean_ns);
        }
    }

    fn finish(mut self, trace: &Trace, places: &Places, tallies: &mut [Tally]) {
        self.of_node.extend(self.current.take());
        for ((budget, backend), sums) in self.of_node {
            for (node, sum) in trace.nodes.ids().zip(sums) {
                if let Some((place, sum)) = places.of_node(node).zip(sum) {
                    tallies[budget].add(OpKey::new(trace, backend, node, place), sum);
                }
            }
        }
        for ((budget, key), sum) in self.others {
            tallies[budget].add(key, sum);
        }
        for (budget, threads) in self.threads {
            tallies[budget].threads = threads;
        }
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

/// Cells of the cache that an op of attention looks at.
fn cells(trace: &Trace, id: NodeId) -> Option<u64> {
    let signature = trace.signature(id);
    let source = |at: usize| signature.sources.get(at).map(|source: &_| source.tensor);
    let known = |tensor: Option<Tensor>, at: usize| {
        tensor.filter(Tensor::is_known).and_then(|tensor| u64::try_from(tensor.ne[at]).ok())
    };
    match trace.text(signature.op) {
        "FLASH_ATTN_EXT" => known(source(1), 1),
        "SOFT_MAX" if is_named(trace, id, "kq_soft_max") => known(source(0), 0),
        _ => None,
    }
}

/// Whether the time of an op grows with the cells in use.
fn reads_cache(trace: &Trace, id: NodeId) -> bool {
    match trace.op_name(id) {
        "FLASH_ATTN_EXT" => true,
        "SOFT_MAX" | "MUL_MAT" => is_named(trace, id, "kq"),
        _ => false,
    }
}

fn is_named(trace: &Trace, id: NodeId, beginning: &str) -> bool {
    trace.tensor_name(id).is_some_and(|name| name.starts_with(beginning))
}
