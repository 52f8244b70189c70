//! What rules look at: a recording, and what was tallied of each group of phases in one pass.

use super::copied::{CopyRow, copies};
use crate::budget::{Budget, Part, is_of_host};
use crate::layers::{Layer, Module, Place};
use crate::peaks::Peaks;
use crate::phases::Phases;
use crate::work::Work;
use ggprof_trace::{
    BackendIndex, DeviceWork, Event, EventId, NodeId, Signature, SignatureId, Tensor, Trace,
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
        places: &[Place],
        budgets: &'a [Budget],
        exposed: &[(EventId, u64)],
        peaks: Option<&'a Peaks>,
    ) -> Self {
        let budget_of_phase = budget_of_phase(phases, budgets);
        let budget_of = |event: &Event| {
            let phase = phases.phase_of_run.get(event.graph_run?.0 as usize)?;
            Some(budget_of_phase[*phase as usize])
        };
        let mut pieces: HashMap<EventId, u64> = HashMap::new();
        for (event, ns) in exposed {
            *pieces.entry(*event).or_default() += ns;
        }
        let copies = copies(trace, budget_of, &pieces);
        let tallies = tallies(trace, places, budgets.len(), budget_of);
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

    pub(super) fn is_of_host(&self, backend: BackendIndex) -> bool {
        is_of_host(self.trace, backend)
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
    places: &[Place],
    budgets: usize,
    budget_of: impl Fn(&Event) -> Option<usize>,
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
    let mut kernels = Kernels { work: &trace.device_work };
    let mut launched: Vec<Launched> = vec![Launched::default(); trace.graph_runs.len()];
    for event in trace.events.iter() {
        let own_work = kernels.of(&event);
        let count = own_work.len() as u64;
        let (Some(budget), Some(run)) = (budget_of(&event), event.graph_run) else { continue };
        let tally = &mut tallies[budget];
        if last_split != Some((run.0, event.split)) {
            last_split = Some((run.0, event.split));
            tally.splits += u64::from(splits.insert((run.0, event.split)));
        }
        if !event.is_op() {
            continue;
        }
        budget_of_run[run.0 as usize] = Some(budget);
        let node = event.node.0 as usize;
        let of_run = &mut attention[run.0 as usize];
        of_run.0 = of_run.0.max(attends[node].unwrap_or(0));
        of_run.1 += if reads_cache[node] { event.charged_ns } else { 0 };
        launched[run.0 as usize].add(own_work);
        tally.add(trace, &event, places[event.id.0 as usize], count);
    }
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

/// Counts the kernels of events, which come in the order of the events.
struct Kernels<'t> {
    work: &'t [DeviceWork],
}

impl<'t> Kernels<'t> {
    fn of(&mut self, event: &Event) -> &'t [DeviceWork] {
        let before = self.work.iter().take_while(|it| it.event < event.id).count();
        let (_, from) = self.work.split_at(before);
        let (own, rest) = from.split_at(from.iter().take_while(|it| it.event == event.id).count());
        self.work = rest;
        own
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

impl Tally {
    fn add(&mut self, trace: &Trace, event: &Event, place: Place, kernels: u64) {
        let key = OpKey {
            backend: event.backend,
            signature: trace.node(event.node).signature,
            layer: place.layer,
            module: place.module,
        };
        let sum = self.ops.entry(key).or_insert(OpSum {
            count: 0,
            ns: 0,
            unequal_ns: 0,
            kernels: 0,
            example: event.id,
        });
        sum.count += 1;
        sum.ns += event.charged_ns;
        sum.kernels += kernels;
        if let Some(fold) = trace.events.threads(event.id) {
            self.threads = self.threads.max(fold.threads);
            let mean_ns = fold.busy_sum_ns / u64::from(fold.threads);
            sum.unequal_ns += event.duration_ns.saturating_sub(mean_ns);
        }
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
