//! What was copied between backends: which tensors, from which memory to which, how fast, how much
//! of the time nothing else was done, and which weights were copied again and again.

use crate::phases::{PhaseKind, Phases};
use ggprof_ggml::{copied_tensor, is_of_cache, is_pinned};
use ggprof_trace::{
    BackendIndex, BufferUsage, Event, EventKind, GraphRunId, Measured, MemoryIndex, StringId, Trace,
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

/// What memory of the host is to a device that copies from or to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostMemory {
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
    /// `copy_H2D` and the like.
    pub direction: StringId,
    pub source_backend: Option<BackendIndex>,
    pub backend: BackendIndex,
    pub source: Option<MemoryIndex>,
    pub target: Option<MemoryIndex>,
    pub copies: u64,
    pub bytes: u64,
    /// Time of copies that were timed, and their bytes: of some only the call was.
    pub timed_ns: u64,
    pub timed_bytes: u64,
    /// Time of all of them during which no backend computed.
    pub exposed_ns: u64,
    /// The fastest of at least [`LARGE`] bytes, in bytes a second.
    pub best_rate: Option<f64>,
    pub graph_runs: u64,
}

/// Smaller copies tell of latency only.
pub const LARGE: u64 = 64 * 1024;

impl CopyRow {
    /// Bytes a second.
    pub fn rate(&self) -> Option<f64> {
        (self.timed_ns > 0).then(|| self.timed_bytes as f64 * 1e9 / self.timed_ns as f64)
    }

    /// What the host's end is to the device; `None` between devices and within the host.
    pub fn host_memory(&self, trace: &Trace) -> Option<HostMemory> {
        let memory = match trace.text(self.direction) {
            "copy_H2D" => self.source,
            "copy_D2H" => self.target,
            _ => return None,
        };
        Some(memory.map_or(HostMemory::Unknown, |memory| host_memory(trace, memory)))
    }
}

/// What memory of the host is to devices.
pub fn host_memory(trace: &Trace, memory: MemoryIndex) -> HostMemory {
    let kind = trace.memory_kind(memory);
    match is_pinned(&kind.type_name) {
        true => HostMemory::Pinned,
        false if kind.is_on_host => HostMemory::Pageable,
        false => HostMemory::Unknown,
    }
}

/// A weight that was copied in more than one graph run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedWeight {
    pub tensor: StringId,
    pub backend: BackendIndex,
    pub class: TensorClass,
    pub graph_runs: u64,
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
        None => name.ends_with(".weight") || name.ends_with(".bias"),
    };
    if is_weight {
        let is_part = ends.is_some_and(|ends| ends.offset.is_some());
        return match is_part || name.contains("_exps") {
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

type Key = (
    Option<PhaseKind>,
    TensorClass,
    StringId,
    Option<BackendIndex>,
    BackendIndex,
    [Option<MemoryIndex>; 2],
);

pub fn copies(trace: &Trace, phases: &Phases) -> Copies {
    let computing = computing(trace);
    let mut rows: HashMap<Key, (CopyRow, HashSet<Option<GraphRunId>>)> = HashMap::new();
    let mut weights: HashMap<(StringId, BackendIndex), (TensorClass, u64, HashSet<GraphRunId>)> =
        HashMap::new();
    for copy in trace.events.iter().filter(|event| event.kind == EventKind::Copy) {
        let class = class_of(trace, &copy);
        let (row, runs) = row_of(trace, phases, &copy, class, &mut rows);
        row.copies += 1;
        row.bytes = row.bytes.saturating_add(copy.bytes);
        row.exposed_ns = row.exposed_ns.saturating_add(exposed(&computing, &copy));
        if runs.insert(copy.graph_run) {
            row.graph_runs += 1;
        }
        if !matches!(copy.measured, Measured::HostCall | Measured::Unknown) {
            row.timed_ns = row.timed_ns.saturating_add(copy.charged_ns);
            row.timed_bytes = row.timed_bytes.saturating_add(copy.bytes);
            if copy.bytes >= LARGE && copy.duration_ns > 0 {
                let rate = copy.bytes as f64 * 1e9 / copy.duration_ns as f64;
                row.best_rate = Some(row.best_rate.map_or(rate, |best| best.max(rate)));
            }
        }
        let named = trace.node(copy.node).tensor_name.zip(copy.graph_run);
        if let (TensorClass::Weights | TensorClass::Experts, Some((name, run))) = (class, named) {
            let (_, bytes, runs) =
                weights.entry((name, copy.backend)).or_insert_with(|| (class, 0, HashSet::new()));
            *bytes = bytes.saturating_add(copy.bytes);
            runs.insert(run);
        }
    }
    let mut rows: Vec<CopyRow> = rows.into_values().map(|(row, _)| row).collect();
    rows.sort_by_key(|row| {
        let ends = (row.direction, row.source_backend, row.backend, row.source, row.target);
        (row.phase, Reverse(row.bytes), row.class, ends)
    });
    let repeated = weights.into_iter().filter(|(_, (_, _, runs))| runs.len() > 1);
    let mut repeated: Vec<RepeatedWeight> = repeated
        .map(|((tensor, backend), (class, bytes, runs))| RepeatedWeight {
            tensor,
            backend,
            class,
            graph_runs: runs.len() as u64,
            bytes,
        })
        .collect();
    repeated.sort_by_key(|weight| (Reverse(weight.bytes), weight.tensor, weight.backend));
    Copies { rows, repeated }
}

fn row_of<'r>(
    trace: &Trace,
    phases: &Phases,
    copy: &Event,
    class: TensorClass,
    rows: &'r mut HashMap<Key, (CopyRow, HashSet<Option<GraphRunId>>)>,
) -> &'r mut (CopyRow, HashSet<Option<GraphRunId>>) {
    let phase = copy.graph_run.and_then(|run| {
        let phase = *phases.phase_of_run.get(run.0 as usize)?;
        Some(phases.phases.get(phase as usize)?.kind)
    });
    let ends = trace.ends_of(copy.id);
    let (source, target) = ends.map_or((None, None), |ends| (ends.source, ends.target));
    let direction = trace.signature(copy.node).op;
    let key = (phase, class, direction, copy.source_backend, copy.backend, [source, target]);
    rows.entry(key).or_insert_with(|| {
        let row = CopyRow {
            phase,
            class,
            direction,
            source_backend: copy.source_backend,
            backend: copy.backend,
            source,
            target,
            copies: 0,
            bytes: 0,
            timed_ns: 0,
            timed_bytes: 0,
            exposed_ns: 0,
            best_rate: None,
            graph_runs: 0,
        };
        (row, HashSet::new())
    })
}

/// Times in which some backend computed, in order and without overlap; empty where nothing was
/// copied.
fn computing(trace: &Trace) -> Vec<(u64, u64)> {
    if trace.events.iter().all(|event| event.is_op()) {
        return Vec::new();
    }
    let mut times: Vec<(u64, u64)> = trace
        .events
        .iter()
        .filter(|event| event.is_op() && event.measured != Measured::HostCall)
        .map(|event| (event.start_ns, event.end_ns()))
        .collect();
    times.sort_unstable();
    let mut union: Vec<(u64, u64)> = Vec::new();
    for (start, end) in times {
        match union.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => union.push((start, end)),
        }
    }
    union
}

/// How long nothing was computed during a copy.
fn exposed(computing: &[(u64, u64)], copy: &Event) -> u64 {
    let (start, end) = (copy.start_ns, copy.end_ns());
    let from = computing.partition_point(|(_, until)| *until <= start);
    let during = computing[from..].iter().take_while(|(begin, _)| *begin < end);
    let hidden: u64 = during.map(|(begin, until)| until.min(&end) - begin.max(&start)).sum();
    copy.duration_ns.saturating_sub(hidden)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::phases;
    use ggprof_trace::text_fixture;

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
             ends d c",
        );
        let found = copies(&trace, &phases(&trace));
        let rows: Vec<_> = found
            .rows
            .iter()
            .map(|row| {
                let memory = row.host_memory(&trace);
                (row.class, memory, row.bytes, row.timed_ns, row.exposed_ns, row.graph_runs)
            })
            .collect();
        use HostMemory::*;
        assert_eq!(
            rows,
            [
                (TensorClass::Experts, Some(Pinned), 100_000, 10, 10, 1),
                (TensorClass::Weights, Some(Pageable), 8192, 20, 15, 2),
                (TensorClass::Cache, Some(Unknown), 64, 10, 10, 1),
                (TensorClass::Activations, Some(Pageable), 64, 1, 1, 1),
                (TensorClass::Input, Some(Pageable), 4, 0, 1, 1),
            ]
        );
        assert_eq!(found.rows[0].best_rate, Some(1e13));
        assert_eq!(found.repeated.len(), 1);
        let weight = &found.repeated[0];
        assert_eq!(trace.text(weight.tensor), "blk.0.ffn_up.weight");
        assert_eq!((weight.graph_runs, weight.bytes), (2, 8192));
    }
}
