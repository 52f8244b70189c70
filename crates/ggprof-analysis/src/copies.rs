//! What was copied between backends: which tensors, from which memory to which, how fast, how much
//! of the time nothing else was done, and which weights were copied again and again.

use crate::copy_consumers::copy_consumers;
use crate::estimates::CopyTimes;
use crate::layers::Layer;
use crate::peaks::{self, LinkDirection, Peaks};
use crate::phases::{PhaseKind, Phases};
use ggprof_ggml::{
    copied_tensor, is_of_cache, is_of_experts, is_pinned, is_weight as is_weight_name,
    layer_of_weight,
};
use ggprof_trace::{
    BackendIndex, BufferUsage, CopyDirection, Event, EventId, GraphRunId, Measured, MemoryIndex,
    Signature, StringId, Trace,
};
use hashbrown::{HashMap, HashSet};
use std::cmp::Reverse;

/// What a copied tensor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TensorClass {
    Weights,
    /// Weights of experts.
    Experts,
    /// Keys and values, or a recurrent model's states.
    Cache,
    /// What the program fills in: tokens, positions, masks.
    Input,
    /// What a graph computes.
    Activations,
    Unknown,
}

/// What the host's end of a copy is to the device that copies from or to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostEnd {
    /// The device reaches it by itself.
    Pinned,
    /// It is copied to pinned memory first, by the driver.
    Pageable,
    Unknown,
}

/// Copies of one class of tensors between the same kinds of memory, in phases of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyRow {
    pub phase: Option<PhaseKind>,
    pub class: TensorClass,
    pub direction: CopyDirection,
    pub source_backend: Option<BackendIndex>,
    pub backend: BackendIndex,
    pub source: Option<MemoryIndex>,
    pub target: Option<MemoryIndex>,
    pub copies: u64,
    pub bytes: u64,
    /// Time of copies that were timed, and the bytes of those whose clock is known.
    pub timed_ns: u64,
    pub timed_bytes: u64,
    /// What those of which only the call was timed are estimated to have taken.
    pub estimated_ns: Option<f64>,
    /// What they have of the budgets of phases: time in which nothing computed, each instant once; `None`
    /// outside of phases.
    pub exposed_ns: Option<u64>,
    /// The fastest of at least [`LARGE`] bytes, in bytes a second.
    pub best_rate: Option<f64>,
    /// In how many graph runs; some may be outside of all.
    pub graph_runs: u64,
    /// The op that waits for most of them; `None` where no op does.
    pub consumer: Option<StringId>,
}

/// Smaller copies tell of latency only.
pub const LARGE: u64 = 64 * 1024;

impl CopyRow {
    fn of((phase, class, direction, source_backend, backend, [source, target]): CopyKey) -> Self {
        Self {
            phase,
            class,
            direction,
            source_backend,
            backend,
            source,
            target,
            copies: 0,
            bytes: 0,
            timed_ns: 0,
            timed_bytes: 0,
            estimated_ns: None,
            exposed_ns: phase.map(|_| 0),
            best_rate: None,
            graph_runs: 0,
            consumer: None,
        }
    }

    fn add_time(&mut self, copy: &Event) {
        self.timed_ns = self.timed_ns.saturating_add(copy.charged_ns);
        // Recordings of ggml's profiler do not tell whether it is the call's: no rate comes from them.
        if copy.measured == Measured::Unknown {
            return;
        }
        self.timed_bytes = self.timed_bytes.saturating_add(copy.bytes);
        if copy.bytes >= LARGE && copy.duration_ns > 0 {
            let rate = copy.bytes as f64 * 1e9 / copy.duration_ns as f64;
            self.best_rate = Some(self.best_rate.map_or(rate, |best| best.max(rate)));
        }
    }

    /// Bytes a second.
    pub fn rate(&self) -> Option<f64> {
        (self.timed_ns > 0 && self.timed_bytes > 0)
            .then(|| self.timed_bytes as f64 * 1e9 / self.timed_ns as f64)
    }

    /// The part of the rate that was measured of the link with pinned memory; `None` for small copies,
    /// which tell of latency only.
    pub fn share_of_link(&self, trace: &Trace, peaks: &Peaks) -> Option<f64> {
        let direction = match self.direction {
            CopyDirection::HostToDevice => LinkDirection::HostToDevice,
            CopyDirection::DeviceToHost => LinkDirection::DeviceToHost,
            _ => return None,
        };
        // Only the device's end has a link.
        let ends = [Some(self.backend), self.source_backend];
        let device = ends.into_iter().flatten().find_map(|it| peaks.device_of(trace, it))?;
        let link = device.copy_rate(direction, peaks::HostMemory::Pinned)?;
        let is_large = self.bytes / self.copies.max(1) >= LARGE;
        self.rate().filter(|_| is_large).map(|rate| rate / link)
    }

    /// What the host's end is to the device; `None` between devices and within the host.
    pub fn host_memory(&self, trace: &Trace) -> Option<HostEnd> {
        let memory = match self.direction {
            CopyDirection::HostToDevice => self.source,
            CopyDirection::DeviceToHost => self.target,
            _ => return None,
        };
        Some(memory.map_or(HostEnd::Unknown, |memory| host_memory(trace, memory)))
    }
}

/// What memory of the host is to devices.
pub fn host_memory(trace: &Trace, memory: MemoryIndex) -> HostEnd {
    let kind = trace.memory_kind(memory);
    match is_pinned(&kind.type_name) {
        true => HostEnd::Pinned,
        false if kind.is_on_host => HostEnd::Pageable,
        false => HostEnd::Unknown,
    }
}

/// A weight that was copied in more than one graph run, in all layers where it was copied as often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedWeight {
    /// `blk.*.ffn_up.weight` where there are several layers.
    pub tensor: String,
    /// In order; none for a weight that belongs to no layer.
    pub layers: Vec<Layer>,
    pub backend: BackendIndex,
    pub class: TensorClass,
    pub graph_runs: u64,
    /// Of all layers.
    pub bytes: u64,
}

#[derive(Debug, Default)]
pub struct Copies {
    /// By phase, the most bytes first.
    pub rows: Vec<CopyRow>,
    /// The most bytes first.
    pub repeated: Vec<RepeatedWeight>,
}

pub fn class_of(trace: &Trace, copy: &Event) -> TensorClass {
    let ends = trace.ends_of(copy.id);
    let name = trace.tensor_name(copy.node).unwrap_or_default();
    let name = copied_tensor(name).unwrap_or(name);
    let usage = ends.and_then(|ends| ends.source).map(|memory| trace.memory_kind(memory).usage);
    // Of recordings that do not tell the use of memory, names do.
    let is_weight = match usage {
        Some(usage) => usage == BufferUsage::Weights,
        None => is_weight_name(name),
    };
    if is_weight {
        let is_part = ends.is_some_and(|ends| ends.offset.is_some());
        return match is_part || is_of_experts(name) {
            true => TensorClass::Experts,
            false => TensorClass::Weights,
        };
    }
    if is_of_cache(name) {
        return TensorClass::Cache;
    }
    if ends.is_some_and(|ends| ends.is_input) {
        return TensorClass::Input;
    }
    match usage {
        Some(BufferUsage::Compute) => TensorClass::Activations,
        _ => TensorClass::Unknown,
    }
}

type CopyKey = (
    Option<PhaseKind>,
    TensorClass,
    CopyDirection,
    Option<BackendIndex>,
    BackendIndex,
    [Option<MemoryIndex>; 2],
);

/// `exposed` are the pieces of copies that are in the [budgets](crate::Divided::exposed) of phases.
pub fn copies(trace: &Trace, phases: &Phases, exposed: &[(EventId, u64)]) -> Copies {
    let mut pieces: HashMap<EventId, u64> = HashMap::new();
    exposed.iter().for_each(|(copy, ns)| *pieces.entry(*copy).or_default() += ns);
    let times = CopyTimes::of(trace);
    let consumers: HashMap<EventId, EventId> = copy_consumers(trace).into_iter().collect();
    let mut waiting: HashMap<(CopyKey, StringId), u64> = HashMap::new();
    let mut rows: HashMap<CopyKey, (CopyRow, HashSet<GraphRunId>)> = HashMap::new();
    let mut weights: HashMap<(StringId, BackendIndex), CopiedWeight> = HashMap::new();
    for copy in trace.events.copies() {
        let class = class_of(trace, &copy);
        let key = key_of(trace, phases, &copy, class);
        if let Some(op) = consumers.get(&copy.id) {
            let op = trace.signature(trace.events.get(*op).node).op;
            // Of a split that was timed as a whole nothing tells which of its ops it is.
            if trace.text(op) != Signature::WHOLE_SPLIT {
                *waiting.entry((key, op)).or_default() += 1;
            }
        }
        let (row, runs) = rows.entry(key).or_insert_with(|| (CopyRow::of(key), HashSet::new()));
        row.copies += 1;
        row.bytes = row.bytes.saturating_add(copy.bytes);
        row.graph_runs += u64::from(copy.graph_run.is_some_and(|run| runs.insert(run)));
        if times.is_untimed(trace, &copy) {
            let estimate = times.mean_ns(trace, &copy);
            row.estimated_ns = row.estimated_ns.into_iter().chain(estimate).reduce(|a, b| a + b);
        } else {
            row.add_time(&copy);
        }
        if let Some(sum) = &mut row.exposed_ns {
            *sum += pieces.get(&copy.id).copied().unwrap_or(0);
        }
        let named = trace.node(copy.node).tensor_name.zip(copy.graph_run);
        if let (TensorClass::Weights | TensorClass::Experts, Some((name, run))) = (class, named) {
            let weight = weights.entry((name, copy.backend)).or_insert_with(|| CopiedWeight {
                class,
                bytes: 0,
                runs: HashSet::new(),
            });
            weight.bytes = weight.bytes.saturating_add(copy.bytes);
            weight.runs.insert(run);
        }
    }
    let mut most: HashMap<CopyKey, (u64, Reverse<StringId>)> = HashMap::new();
    for ((key, op), copies) in waiting {
        let of_key = most.entry(key).or_insert((0, Reverse(op)));
        *of_key = (*of_key).max((copies, Reverse(op)));
    }
    let mut rows: Vec<CopyRow> = rows
        .into_iter()
        .map(|(key, (row, _))| CopyRow { consumer: most.get(&key).map(|(_, op)| op.0), ..row })
        .collect();
    rows.sort_by_key(|row| {
        let ends = (row.direction, row.source_backend, row.backend, row.source, row.target);
        (row.phase, Reverse(row.bytes), row.class, ends)
    });
    let repeated = repeated(trace, weights);
    Copies { rows, repeated }
}

/// What was copied of one weight.
struct CopiedWeight {
    class: TensorClass,
    bytes: u64,
    runs: HashSet<GraphRunId>,
}

/// Those of several runs, layers together.
fn repeated(
    trace: &Trace,
    weights: HashMap<(StringId, BackendIndex), CopiedWeight>,
) -> Vec<RepeatedWeight> {
    let mut groups: HashMap<_, RepeatedWeight> = HashMap::new();
    for ((name, backend), CopiedWeight { class, bytes, runs }) in weights {
        if runs.len() < 2 {
            continue;
        }
        let (name, graph_runs) = (trace.text(name), runs.len() as u64);
        let (layer, stem) = layer_of_weight(name)
            .map_or((None, name), |(number, stem)| (Some(Layer(number)), stem));
        let key = (stem, layer.is_some(), backend, class, graph_runs);
        let group = groups.entry(key).or_insert_with(|| RepeatedWeight {
            tensor: name.to_owned(),
            layers: Vec::new(),
            backend,
            class,
            graph_runs,
            bytes: 0,
        });
        if !group.layers.is_empty() {
            group.tensor = format!("blk.*.{stem}");
        }
        group.layers.extend(layer);
        group.bytes = group.bytes.saturating_add(bytes);
    }
    let mut repeated: Vec<RepeatedWeight> = groups.into_values().collect();
    repeated.iter_mut().for_each(|weight| weight.layers.sort_unstable());
    repeated.sort_by(|one, other| {
        let order = |it: &RepeatedWeight| (Reverse(it.bytes), it.backend, it.graph_runs);
        order(one).cmp(&order(other)).then_with(|| one.tensor.cmp(&other.tensor))
    });
    repeated
}

fn key_of(trace: &Trace, phases: &Phases, copy: &Event, class: TensorClass) -> CopyKey {
    let phase = match copy.graph_run {
        Some(run) => {
            phases.phase_of_run.get(run.0 as usize).map(|&phase| phases.phases[phase as usize].kind)
        }
        // Results are read when their graph run is over.
        None => phases.kind_at(trace.backend(copy.backend).process, copy.start_ns),
    };
    let ends = trace.ends_of(copy.id);
    let ends = ends.map_or([None; 2], |ends| [ends.source, ends.target]);
    let direction = trace.direction(copy.node);
    (phase, class, direction, copy.source_backend, copy.backend, ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::divided;
    use crate::layers::places;
    use crate::phases::phases;
    use ggprof_trace::text_fixture;

    fn found(trace: &Trace) -> Copies {
        let phases = phases(trace);
        copies(trace, &phases, &divided(trace, &phases, &places(trace)).exposed)
    }

    #[test]
    fn copies_by_what_is_copied_and_between_which_memory() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             backend 1 CPU cpu
             memory w CPU_Mapped weights host
             memory p CUDA_Host weights host
             memory c CPU compute host
             memory d GPU compute device
             run 0..100
             run 100..200
             copy GPU H2D 0..10 4096 blk.0.ffn_up.weight run=0 measured=host
             ends w d
             op GPU MUL_MAT 5..20 ffn_up-0 run=0
             copy GPU H2D 20..30 100000 blk.0.ffn_up_exps.weight run=0 measured=device
             ends p d at=0
             copy GPU H2D 30..31 4 inp_pos run=0 measured=host_call
             ends c d input
             copy GPU H2D 100..110 4096 blk.0.ffn_up.weight run=1 measured=host
             ends w d
             copy CPU D2H 110..120 64 cache_k_l0 run=1 measured=host
             copy CPU D2H 120..121 64 ffn_out-0 run=1 measured=host
             ends d c
             copy CPU D2H 330..331 16 state measured=host",
        );
        let found = found(&trace);
        let rows: Vec<_> = found
            .rows
            .iter()
            .map(|row| {
                let memory = row.host_memory(&trace);
                (row.class, memory, row.bytes, row.timed_ns, row.exposed_ns, row.graph_runs)
            })
            .collect();
        use HostEnd::*;
        assert_eq!(
            rows,
            [
                (TensorClass::Unknown, Some(Unknown), 16, 1, None, 0),
                (TensorClass::Experts, Some(Pinned), 100_000, 10, Some(10), 1),
                // The device timed others, so a call tells nothing of these.
                (TensorClass::Weights, Some(Pageable), 8192, 0, Some(0), 2),
                (TensorClass::Cache, Some(Unknown), 64, 10, Some(10), 1),
                (TensorClass::Activations, Some(Pageable), 64, 1, Some(1), 1),
                (TensorClass::Input, Some(Pageable), 4, 0, Some(0), 1),
            ]
        );
        assert_eq!((found.rows[1].best_rate, found.rows[1].estimated_ns), (Some(1e13), None));
        let waits = |row: &CopyRow| row.consumer.map(|op| trace.text(op));
        assert_eq!([waits(&found.rows[1]), waits(&found.rows[2])], [None, Some("MUL_MAT")]);
        assert_eq!(found.repeated.len(), 1);
        let weight = &found.repeated[0];
        assert_eq!(
            (weight.tensor.as_str(), &weight.layers[..]),
            ("blk.0.ffn_up.weight", &[Layer(0)][..])
        );
        assert_eq!((weight.graph_runs, weight.bytes), (2, 8192));
    }

    #[test]
    fn the_same_weight_of_several_layers_is_named_once() {
        let copied = |run: u32, layers: std::ops::Range<u32>| -> String {
            let line = |layer| {
                format!("copy GPU H2D 0..5 64 blk.{layer}.ffn_up.weight run={run} measured=host\n")
            };
            layers.map(line).collect()
        };
        let (first, second) = (copied(0, 1..5), copied(1, 1..4));
        let trace = text_fixture::parse(&format!(
            "backend 0 GPU gpu\nrun 0..100\nrun 100..200\n{first}{second}"
        ));
        let [weight] = &found(&trace).repeated[..] else { panic!() };
        assert_eq!(weight.tensor, "blk.*.ffn_up.weight");
        assert_eq!(weight.layers, [1, 2, 3].map(Layer));
        assert_eq!((weight.graph_runs, weight.bytes), (2, 3 * 2 * 64));
    }

    /// As in the budget: not while kernels run, which an op has gaps between, and copies side by side once.
    #[test]
    fn what_is_exposed_is_what_the_budget_has() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             batch 0..100 0:10+1!1
             run 0..100 batch=0
             op GPU MUL_MAT 0..60 result_output run=0 measured=device
             kernel a 0..10
             kernel b 50..60
             copy GPU H2D 5..30 512 x run=0 measured=device
             copy GPU H2D 20..40 512 y run=0 measured=device",
        );
        let [row] = &found(&trace).rows[..] else { panic!() };
        assert_eq!((row.timed_ns, row.exposed_ns), (45, Some(30)));
        let phases = phases(&trace);
        let [budget] = &divided(&trace, &phases, &places(&trace)).budgets[..] else { panic!() };
        let copying = crate::Spent::Copying(CopyDirection::HostToDevice);
        assert_eq!(budget.sum(|spent| spent == copying), 30);
    }

    #[test]
    fn results_are_read_in_the_phase_that_computes_them() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             batch 0..100 0:10+1!1
             batch 100..200 0:11+1!1
             run 0..60 batch=0
             run 100..160 batch=1
             op GPU MUL_MAT 0..60 result_output run=0
             op GPU MUL_MAT 100..160 result_output run=1
             copy GPU D2H 70..80 512 measured=device",
        );
        let [row] = &found(&trace).rows[..] else { panic!() };
        assert_eq!((row.phase, row.graph_runs), (Some(PhaseKind::Generation), 0));
    }

    #[test]
    fn copies_that_only_a_call_was_timed_of_are_estimated() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             run 0..100
             copy GPU H2D 0..4 64 x run=0 measured=device
             copy GPU H2D 10..60 64 x run=0 measured=host
             copy GPU H2D 60..70 64 x run=0 measured=host_call",
        );
        let [row] = &found(&trace).rows[..] else { panic!() };
        assert_eq!((row.timed_ns, row.estimated_ns, row.exposed_ns), (4, Some(8.0), Some(4)));
    }

    #[test]
    fn a_split_that_was_timed_as_a_whole_is_no_op_that_waits() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             run 0..100
             copy GPU H2D 0..10 64 inp_x run=0
             op GPU SPLIT 10..100 x run=0 measured=device",
        );
        assert_eq!(found(&trace).rows[0].consumer, None);
    }
}
