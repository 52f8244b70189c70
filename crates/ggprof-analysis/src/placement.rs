//! Which parts of the model were computed where, in which phase; why the processor computed what it
//! did although there is a device; and what that cost: its own time, and the copies and splits that
//! were needed only because of it.

mod caused;
mod reason;

pub use reason::{Offload, Reason, reason_of};

use crate::layers::{Layer, Module, Place, places};
use crate::phases::{PhaseKind, Phases};
use ggprof_trace::{BackendIndex, DeviceType, Event, NodeId, Trace};
use hashbrown::HashMap;

/// One op of one part of the model on one backend, in all phases of a kind, for one reason.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementRow {
    /// `None` for graphs outside any phase.
    pub phase: Option<PhaseKind>,
    pub backend: BackendIndex,
    pub module: Module,
    /// All ops of a fusion together: `RMS_NORM+MUL`.
    pub op: String,
    pub reason: Reason,
    /// In which layers, in order; none for what belongs to no layer.
    pub layers: Vec<Layer>,
    /// The node that took longest, as an example.
    pub example: NodeId,
    pub calls: u64,
    pub own_ns: u64,
    pub caused: Caused,
}

/// What happened only because the processor computed something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caused {
    pub copies: u64,
    pub copy_bytes: u64,
    pub copy_ns: u64,
    /// Parts of graph runs that the processor computed.
    pub splits: u64,
}

impl PlacementRow {
    /// Its own time and that of the copies.
    pub fn cost_ns(&self) -> u64 {
        self.own_ns.saturating_add(self.caused.copy_ns)
    }

    /// Counts another row to this one, which keeps its example.
    pub fn add(&mut self, other: &PlacementRow) {
        self.calls += other.calls;
        self.own_ns = self.own_ns.saturating_add(other.own_ns);
        self.caused = plus(self.caused, other.caused);
        self.layers.extend(&other.layers);
        self.layers.sort_unstable();
        self.layers.dedup();
    }
}

/// How long a backend computed one part of one layer, for a map of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapCell {
    pub phase: Option<PhaseKind>,
    pub layer: Option<Layer>,
    pub module: Module,
    pub backend: BackendIndex,
    pub calls: u64,
    pub own_ns: u64,
}

#[derive(Debug, Default)]
pub struct Placements {
    /// By phase, and in it the most expensive first.
    pub rows: Vec<PlacementRow>,
    /// By phase, layer, module and backend.
    pub map: Vec<MapCell>,
    /// There is a device, and what it says of the processor's nodes was recorded.
    pub is_explained: bool,
    /// There is a device at all.
    pub has_device: bool,
}

impl Placements {
    /// What the processor computed although there is a device.
    pub fn on_host<'p>(&'p self, trace: &Trace) -> impl Iterator<Item = &'p PlacementRow> {
        let all = (0..trace.backends.len() as u16).map(BackendIndex);
        let is_host: Vec<bool> = all.map(|backend| is_host(trace, backend)).collect();
        let has_device = self.has_device;
        self.rows.iter().filter(move |row| has_device && is_host[usize::from(row.backend.0)])
    }
}

/// What is added up before reasons are asked for.
type NodeKey = (Option<PhaseKind>, BackendIndex, NodeId, Place);
type RowKey = (Option<PhaseKind>, BackendIndex, Module, String, Reason);

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    calls: u64,
    own_ns: u64,
    longest_ns: u64,
    caused: Caused,
}

pub fn placement(trace: &Trace, phases: &Phases) -> Placements {
    let places = places(trace);
    let mut sums: HashMap<NodeKey, Sum> = HashMap::new();
    for event in trace.events.iter().filter(|event| event.is_op()) {
        let sum = sums.entry(node_key(phases, &event, places.of(&event))).or_default();
        sum.calls += 1;
        sum.own_ns = sum.own_ns.saturating_add(event.charged_ns);
        sum.longest_ns = sum.longest_ns.max(event.duration_ns);
    }
    for (event, caused) in caused::all(trace, &places) {
        let place = places.of(&event);
        let sum = sums.entry(node_key(phases, &event, place)).or_default();
        sum.caused = plus(sum.caused, caused);
    }
    Placements {
        map: map(&sums),
        rows: rows(trace, sums),
        is_explained: !trace.placements.is_empty(),
        has_device: has_device(trace),
    }
}

/// Whether a backend is the processor. That of a server computes what its client left to it, and is a
/// device to it.
fn is_host(trace: &Trace, backend: BackendIndex) -> bool {
    trace.backend(backend).device_type == DeviceType::Cpu && !trace.is_of_server(backend)
}

pub(crate) fn has_device(trace: &Trace) -> bool {
    let is_device =
        |kind| matches!(kind, DeviceType::Gpu | DeviceType::IntegratedGpu | DeviceType::Meta);
    trace.backends.iter().any(|backend| is_device(backend.device_type))
}

fn node_key(phases: &Phases, event: &Event, place: Place) -> NodeKey {
    let phase = event.graph_run.and_then(|run| {
        let phase = *phases.phase_of_run.get(run.0 as usize)?;
        Some(phases.phases.get(phase as usize)?.kind)
    });
    (phase, event.backend, event.node, place)
}

fn rows(trace: &Trace, sums: HashMap<NodeKey, Sum>) -> Vec<PlacementRow> {
    let mut rows: HashMap<RowKey, (PlacementRow, u64)> = HashMap::new();
    for ((phase, backend, node, place), sum) in sums {
        let signature = trace.signature(node);
        let op = trace.text(signature.extra.unwrap_or(signature.op)).to_owned();
        let reason = reason_of(trace, backend, node, place.module);
        let key = (phase, backend, place.module, op.clone(), reason);
        let (row, longest) = rows.entry(key).or_insert_with(|| {
            let (layers, caused) = Default::default();
            let (calls, own_ns) = (0, 0);
            let module = place.module;
            let example = node;
            let row = PlacementRow {
                phase,
                backend,
                module,
                op,
                reason,
                layers,
                example,
                calls,
                own_ns,
                caused,
            };
            (row, 0)
        });
        row.calls += sum.calls;
        row.own_ns = row.own_ns.saturating_add(sum.own_ns);
        row.caused = plus(row.caused, sum.caused);
        row.layers.extend(place.layer);
        // Whatever the order in which nodes come: the same one is the example.
        if (sum.longest_ns, row.example) > (*longest, node) {
            (row.example, *longest) = (node, sum.longest_ns);
        }
    }
    let mut rows: Vec<PlacementRow> = rows.into_values().map(|(row, _)| row).collect();
    for row in &mut rows {
        row.layers.sort_unstable();
        row.layers.dedup();
    }
    rows.sort_by(|a, b| {
        let key = |row: &PlacementRow| (row.phase, std::cmp::Reverse(row.cost_ns()));
        let rest = |row: &PlacementRow| (row.backend, row.module, row.reason);
        key(a).cmp(&key(b)).then_with(|| a.op.cmp(&b.op)).then_with(|| rest(a).cmp(&rest(b)))
    });
    rows
}

fn map(sums: &HashMap<NodeKey, Sum>) -> Vec<MapCell> {
    let mut cells: HashMap<_, (u64, u64)> = HashMap::new();
    for ((phase, backend, _, place), sum) in sums {
        let cell = cells.entry((*phase, place.layer, place.module, *backend)).or_default();
        *cell = (cell.0 + sum.calls, cell.1.saturating_add(sum.own_ns));
    }
    let mut cells: Vec<MapCell> = cells
        .into_iter()
        .map(|((phase, layer, module, backend), (calls, own_ns))| MapCell {
            phase,
            layer,
            module,
            backend,
            calls,
            own_ns,
        })
        .collect();
    cells.sort_by_key(|cell| (cell.phase, cell.layer, cell.module, cell.backend));
    cells
}

fn plus(a: Caused, b: Caused) -> Caused {
    Caused {
        copies: a.copies + b.copies,
        copy_bytes: a.copy_bytes.saturating_add(b.copy_bytes),
        copy_ns: a.copy_ns.saturating_add(b.copy_ns),
        splits: a.splits + b.splits,
    }
}

#[cfg(test)]
mod tests;
