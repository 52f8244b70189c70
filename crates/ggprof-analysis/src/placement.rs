//! Which parts of the model were computed where, in which phase; why the processor computed what it
//! did although there is a device; and what that cost: its own time, and the copies and splits that
//! were needed only because of it.

mod caused;
mod reason;

pub use reason::{Offload, Reason, reason_of};

use crate::estimates::{Estimate, estimates_in_parts};
use crate::layers::{Layer, Module, Place, Places, places};
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
    /// The part of it that was not measured op by op.
    pub estimated_ns: u64,
    pub caused: Caused,
}

/// What happened only because the processor computed something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caused {
    pub copies: u64,
    pub copy_bytes: u64,
    /// Without copies of which only the call was timed, if no other copy tells how long they took.
    pub copy_ns: u64,
    /// The part of it that others tell.
    pub estimated_copy_ns: u64,
    /// Parts of graph runs that the processor computed.
    pub splits: u64,
}

impl PlacementRow {
    /// Its own time and that of the copies.
    pub fn cost_ns(&self) -> u64 {
        self.own_ns.saturating_add(self.caused.copy_ns)
    }

    /// How much of the cost was not measured.
    pub fn estimated_cost_ns(&self) -> u64 {
        self.estimated_ns.saturating_add(self.caused.estimated_copy_ns)
    }

    /// Counts another row to this one, which keeps its example.
    pub fn add(&mut self, other: &PlacementRow) {
        self.calls += other.calls;
        self.own_ns = self.own_ns.saturating_add(other.own_ns);
        self.estimated_ns = self.estimated_ns.saturating_add(other.estimated_ns);
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
    /// The part of it that was not measured op by op.
    pub estimated_ns: u64,
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
struct PlacedSum {
    calls: f64,
    measured_ns: u64,
    /// Beyond what was measured; below zero for splits whose time was given to their ops.
    estimated_ns: f64,
    longest_ns: u64,
    caused: Caused,
}

impl PlacedSum {
    fn add(&mut self, other: &PlacedSum) {
        self.calls += other.calls;
        self.measured_ns = self.measured_ns.saturating_add(other.measured_ns);
        self.estimated_ns += other.estimated_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.caused = plus(self.caused, other.caused);
    }

    fn own_ns(&self) -> u64 {
        (self.measured_ns as f64 + self.estimated_ns).round() as u64
    }

    fn added_ns(&self) -> u64 {
        self.estimated_ns.round() as u64
    }
}

pub fn placement(trace: &Trace, phases: &Phases) -> Placements {
    let places = places(trace);
    let mut sums: HashMap<NodeKey, PlacedSum> = HashMap::new();
    for event in trace.events.iter().filter(|event| event.is_op()) {
        let sum = sums.entry(node_key(phases, &event, places.of(&event))).or_default();
        sum.calls += 1.0;
        sum.measured_ns = sum.measured_ns.saturating_add(event.charged_ns);
        sum.longest_ns = sum.longest_ns.max(event.duration_ns);
    }
    for (key, estimate) in estimates(trace, phases, &places) {
        let sum = sums.entry(key).or_default();
        // In steps whose sums are exact: it does not matter which node comes first.
        const STEPS: f64 = (1 << 20) as f64;
        sum.calls += (estimate.calls * STEPS).round() / STEPS;
        sum.estimated_ns += estimate.ns;
    }
    for (event, caused) in caused::all(trace, &places) {
        let place = places.of(&event);
        let sum = sums.entry(node_key(phases, &event, place)).or_default();
        sum.caused = plus(sum.caused, caused);
    }
    Placements {
        map: map(&sums),
        rows: rows(trace, &sums),
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

/// Of splits that were timed as wholes. Copies are none of the ops.
fn estimates(
    trace: &Trace,
    phases: &Phases,
    places: &Places,
) -> impl Iterator<Item = (NodeKey, Estimate)> {
    let of_ops = estimates_in_parts(
        trace,
        |event| phase_of(phases, event),
        |event| event.is_op().then(|| (event.backend, event.node, places.of(event))),
    );
    of_ops.into_iter().map(|((phase, (backend, node, place)), estimate)| {
        ((phase, backend, node, place), estimate)
    })
}

fn node_key(phases: &Phases, event: &Event, place: Place) -> NodeKey {
    (phase_of(phases, event), event.backend, event.node, place)
}

fn phase_of(phases: &Phases, event: &Event) -> Option<PhaseKind> {
    let phase = *phases.phase_of_run.get(event.graph_run?.0 as usize)?;
    Some(phases.phases.get(phase as usize)?.kind)
}

fn rows(trace: &Trace, sums: &HashMap<NodeKey, PlacedSum>) -> Vec<PlacementRow> {
    let mut rows: HashMap<RowKey, Gathered> = HashMap::new();
    for ((phase, backend, node, place), sum) in sums {
        let signature = trace.signature(*node);
        let op = trace.text(signature.extra.unwrap_or(signature.op)).to_owned();
        let reason = reason_of(trace, *backend, *node, place.module);
        let key = (*phase, *backend, place.module, op, reason);
        rows.entry(key).or_insert_with(|| Gathered::by(*node)).add(*node, *place, sum);
    }
    let mut rows: Vec<PlacementRow> = rows.into_iter().map(|(key, of)| of.row(key)).collect();
    rows.sort_by(|a, b| {
        let key = |row: &PlacementRow| (row.phase, std::cmp::Reverse(row.cost_ns()));
        let rest = |row: &PlacementRow| (row.backend, row.module, row.reason);
        key(a).cmp(&key(b)).then_with(|| a.op.cmp(&b.op)).then_with(|| rest(a).cmp(&rest(b)))
    });
    rows
}

/// A row while it grows.
struct Gathered {
    sum: PlacedSum,
    layers: Vec<Layer>,
    example: NodeId,
}

impl Gathered {
    fn by(example: NodeId) -> Self {
        Self { sum: PlacedSum::default(), layers: Vec::new(), example }
    }

    fn add(&mut self, node: NodeId, place: Place, sum: &PlacedSum) {
        // Whatever the order in which nodes come: the same one is the example.
        if (sum.longest_ns, self.example) > (self.sum.longest_ns, node) {
            self.example = node;
        }
        self.sum.add(sum);
        self.layers.extend(place.layer);
    }

    fn row(mut self, key: RowKey) -> PlacementRow {
        let (phase, backend, module, op, reason) = key;
        self.layers.sort_unstable();
        self.layers.dedup();
        let Self { sum, layers, example } = self;
        PlacementRow {
            phase,
            backend,
            module,
            op,
            reason,
            layers,
            example,
            calls: sum.calls.round() as u64,
            own_ns: sum.own_ns(),
            estimated_ns: sum.added_ns(),
            caused: sum.caused,
        }
    }
}

fn map(sums: &HashMap<NodeKey, PlacedSum>) -> Vec<MapCell> {
    let mut cells: HashMap<_, PlacedSum> = HashMap::new();
    for ((phase, backend, _, place), sum) in sums {
        cells.entry((*phase, place.layer, place.module, *backend)).or_default().add(sum);
    }
    let cell = |((phase, layer, module, backend), sum): ((_, _, _, _), PlacedSum)| MapCell {
        phase,
        layer,
        module,
        backend,
        calls: sum.calls.round() as u64,
        own_ns: sum.own_ns(),
        estimated_ns: sum.added_ns(),
    };
    let mut cells: Vec<MapCell> = cells.into_iter().map(cell).collect();
    cells.sort_by_key(|cell| (cell.phase, cell.layer, cell.module, cell.backend));
    cells
}

fn plus(a: Caused, b: Caused) -> Caused {
    Caused {
        copies: a.copies + b.copies,
        copy_bytes: a.copy_bytes.saturating_add(b.copy_bytes),
        copy_ns: a.copy_ns.saturating_add(b.copy_ns),
        estimated_copy_ns: a.estimated_copy_ns.saturating_add(b.estimated_copy_ns),
        splits: a.splits + b.splits,
    }
}

#[cfg(test)]
mod tests;
