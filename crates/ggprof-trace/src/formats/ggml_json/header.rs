//! The parts of the file around the records: backends, and what ggprof adds.

use super::coverage::CoverageEntry;
use super::placement::PlacementEntries;
use super::processes::ProcessEntries;
use crate::EventId;
use crate::model::{
    Backend, BackendIndex, Batch, BatchId, Buffer, ContextChange, DeviceType, DeviceWork,
    FreeMemory, GraphCall, GraphRun, GraphRunId, HostTask, Loss, LossKind, ProcessIndex,
    Provenance, Sensor, StringId, TaskKind, ThreadShare, Trace, Transfer, TypeInfo, WorkKind,
};
use serde::{Deserialize, Serialize};

/// An entry of `backends`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BackendEntry {
    #[serde(default)]
    pub(super) id: i32,
    pub(super) name: Option<String>,
    pub(super) device: Option<String>,
    /// Of ggprof's files only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) description: String,
    #[serde(default)]
    pub(super) device_type: i64,
}

/// The top-level key `ggprof`: facts that ggml's format has no place for.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Additions {
    /// Version of these additions.
    pub(super) version: u32,
    pub(super) types: Vec<TypeEntry>,
    /// `[op, number]` in the recorded program's ggml.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) op_numbers: Vec<(String, u32)>,
    pub(super) graph_runs_inferred: bool,
    /// `[scheduler, start_ns, end_ns]`, in the order that `graph_run` of a record counts.
    pub(super) graph_runs: Vec<(u32, u64, u64)>,
    /// `[number, batch]` of each graph run; empty where neither is known of any.
    pub(super) graph_run_facts: Vec<(Option<u64>, Option<BatchId>)>,
    pub(super) batches: Vec<Batch>,
    pub(super) context_changes: Vec<ContextChange>,
    /// `[record, thread, start_ns, duration_ns, wait_ns]`.
    pub(super) thread_shares: Vec<(u32, u32, u64, u64, u64)>,
    /// Names that `device_work` refers to.
    pub(super) kernels: Vec<String>,
    pub(super) device_work: Vec<DeviceWorkEntry>,
    pub(super) host_tasks: Vec<HostTaskEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) buffers: Vec<Buffer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) free_memory: Vec<FreeMemory>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) sensors: Vec<Sensor>,
    #[serde(skip_serializing_if = "PlacementEntries::is_empty")]
    pub(super) placement: PlacementEntries,
    #[serde(skip_serializing_if = "ProcessEntries::is_empty")]
    pub(super) processes: ProcessEntries,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) transfers: Vec<Transfer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) graph_calls: Vec<GraphCall>,
    pub(super) provenance: Option<Provenance>,
    pub(super) coverage: Vec<CoverageEntry>,
    pub(super) losses: Vec<Loss>,
}

/// What a device did for a record: `[record, kind, name, stream, start_ns, duration_ns,
/// charged_ns, bytes, flags]`; kinds are 0 kernel, 1 copy, 2 fill, flags 1 concurrent and
/// 2 first use.
type DeviceWorkEntry = (u32, u8, u32, u32, u64, u64, u64, u64, u8);

/// `[what, name, thread, graph_run, start_ns, duration_ns]`.
type HostTaskEntry = (TaskKind, String, u32, Option<u32>, u64, u64);

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TypeEntry {
    pub(super) id: i32,
    pub(super) name: String,
    pub(super) block_elements: u32,
    pub(super) block_bytes: u32,
}

/// Takes the backend table over. Records may have come first and made up unnamed backends.
pub(super) fn take_backends(entries: Vec<BackendEntry>, trace: &mut Trace) {
    for entry in entries {
        let Some(BackendIndex(index)) = trace.backend_with_id(entry.id) else { continue };
        trace.backends[usize::from(index)] = Backend {
            id: entry.id,
            name: entry.name.unwrap_or_else(|| "unknown".to_owned()),
            device: entry.device.unwrap_or_else(|| "unknown".to_owned()),
            description: entry.description,
            device_type: DeviceType::from_ggml(entry.device_type),
            library_path: String::new(),
            process: None,
            called: String::new(),
        };
    }
}

pub(super) fn take_additions(additions: Additions, trace: &mut Trace) {
    trace.writer = "ggprof".to_owned();
    trace.graph_runs_inferred = additions.graph_runs_inferred;
    for TypeEntry { id, name, block_elements, block_bytes } in additions.types {
        trace.types.insert(TypeInfo { id, name, block_elements, block_bytes });
    }
    for (op, number) in &additions.op_numbers {
        trace.op_numbers.insert(op, *number);
    }
    take_graph_runs(additions.graph_runs, trace);
    take_batches(additions.graph_run_facts, additions.batches, trace);
    trace.context_changes = additions.context_changes;
    trace.provenance = additions.provenance;
    take_buffers(additions.buffers, trace);
    trace.free_memory = additions.free_memory;
    take_sensors(additions.sensors, trace);
    for entry in additions.coverage {
        match entry.coverage() {
            Some(coverage) => trace.coverage.push(coverage),
            None => trace.lose(LossKind::DamagedHeader, || "coverage of something new".to_owned()),
        }
    }
    for loss in additions.losses {
        trace.lose_many(loss.kind, loss.count, || loss.detail);
    }
    take_host_tasks(additions.host_tasks, trace);
    take_device_work(additions.device_work, &additions.kernels, trace);
    additions.placement.take(trace);
    additions.processes.take(trace);
    take_transfers(additions.transfers, trace);
    take_graph_calls(additions.graph_calls, trace);
    for (event, thread, start_ns, duration_ns, wait_ns) in additions.thread_shares {
        let event = EventId(event);
        let share = ThreadShare { event, thread, start_ns, duration_ns, wait_ns };
        trace.events.thread_shares.push(share);
    }
}

fn take_graph_runs(runs: Vec<(u32, u64, u64)>, trace: &mut Trace) {
    for (scheduler, start_ns, end_ns) in runs {
        if end_ns < start_ns {
            trace.lose(LossKind::DamagedHeader, || "a graph run ends before it begins".to_owned());
        }
        // It stays: records count the runs.
        let end_ns = end_ns.max(start_ns);
        trace.graph_runs.push(GraphRun::new(scheduler, start_ns, end_ns));
    }
}

fn take_buffers(buffers: Vec<Buffer>, trace: &mut Trace) {
    let is_whole = |buffer: &Buffer| buffer.died_ns.is_none_or(|died| died >= buffer.born_ns);
    for buffer in buffers {
        if is_whole(&buffer) {
            trace.buffers.push(buffer);
        } else {
            trace.lose(LossKind::DamagedHeader, || "a buffer dies before it is born".to_owned());
        }
    }
}

fn take_sensors(sensors: Vec<Sensor>, trace: &mut Trace) {
    for sensor in sensors {
        if sensor.is_whole() {
            trace.sensors.push(sensor);
        } else {
            trace.lose(LossKind::DamagedHeader, || "a sensor's times make no sense".to_owned());
        }
    }
}

fn take_host_tasks(tasks: Vec<HostTaskEntry>, trace: &mut Trace) {
    for (what, name, thread, run, start_ns, duration_ns) in tasks {
        if start_ns.checked_add(duration_ns).is_none() {
            trace.lose(LossKind::DamagedHeader, || "a task of the host never ends".to_owned());
            continue;
        }
        let (name, graph_run) = (trace.strings.intern(&name), run.map(GraphRunId));
        trace.host_tasks.push(HostTask { what, name, thread, graph_run, start_ns, duration_ns });
    }
}

fn take_transfers(transfers: Vec<Transfer>, trace: &mut Trace) {
    let is_known = |process: ProcessIndex| usize::from(process.0) < trace.processes.len();
    let is_sound = |it: &Transfer| it.start_ns <= it.end_ns && it.process.is_none_or(is_known);
    if transfers.iter().all(is_sound) {
        trace.transfers = transfers;
    } else {
        trace.lose(LossKind::DamagedHeader, || "transfers without a process".to_owned());
    }
}

fn take_graph_calls(calls: Vec<GraphCall>, trace: &mut Trace) {
    let is_sound = |it: &GraphCall| {
        it.start_ns <= it.end_ns
            && (it.graph_run.0 as usize) < trace.graph_runs.len()
            && usize::from(it.backend.0) < trace.backends.len()
    };
    if calls.iter().all(is_sound) {
        trace.graph_calls = calls;
    } else {
        trace.lose(LossKind::DamagedHeader, || "graphs of nobody".to_owned());
    }
}

fn take_batches(
    facts: Vec<(Option<u64>, Option<BatchId>)>,
    batches: Vec<Batch>,
    trace: &mut Trace,
) {
    for (run, (number, batch)) in trace.graph_runs.iter_mut().zip(facts) {
        run.number = number;
        run.batch = batch.filter(|batch| (batch.0 as usize) < batches.len());
    }
    let is_sound = |batch: &Batch| batch.end_ns.is_none_or(|end_ns| end_ns >= batch.start_ns);
    if !batches.iter().all(is_sound) {
        trace.lose(LossKind::DamagedHeader, || "a batch ends before it begins".to_owned());
    }
    trace.batches = batches;
}

/// Entries must be in the order of the records and lie within them; others are damage.
fn take_device_work(entries: Vec<DeviceWorkEntry>, kernels: &[String], trace: &mut Trace) {
    let names: Vec<_> = kernels.iter().map(|name| trace.strings.intern(name)).collect();
    let mut charges: Vec<(EventId, u64)> = Vec::new();
    for entry in entries {
        let (event, kind, name, stream, start_ns, duration_ns, charged_ns, bytes, flags) = entry;
        let last = trace.device_work.last().map_or(0, |work| work.event.0);
        let end_ns = start_ns.checked_add(duration_ns);
        let fits = event >= last && (event as usize) < trace.events.len() && {
            let record = trace.events.get(EventId(event));
            let is_inside = end_ns.is_some_and(|end_ns| end_ns <= record.end_ns());
            is_inside && start_ns >= record.start_ns && charged_ns <= duration_ns
        };
        let name = names.get(name as usize).copied();
        let Some(name) = name.filter(|_| fits) else {
            trace.lose(LossKind::DamagedHeader, || "device work of no record".to_owned());
            continue;
        };
        let event = EventId(event);
        match charges.last_mut() {
            Some((last, charge)) if *last == event => *charge = charge.saturating_add(charged_ns),
            _ => charges.push((event, charged_ns)),
        }
        trace.device_work.push(DeviceWork {
            event,
            kind: match kind {
                1 => WorkKind::Copy,
                2 => WorkKind::Fill,
                _ => WorkKind::Kernel,
            },
            name,
            stream,
            start_ns,
            duration_ns,
            charged_ns,
            bytes,
            concurrent: flags & 1 != 0,
            first_use: flags & 2 != 0,
        });
    }
    for (event, charged_ns) in charges {
        trace.events.set_charge(event, charged_ns);
    }
}

fn device_work_of(trace: &Trace) -> (Vec<String>, Vec<DeviceWorkEntry>) {
    let mut names: Vec<StringId> = trace.device_work.iter().map(|work| work.name).collect();
    names.sort_unstable();
    names.dedup();
    let entry = |work: &DeviceWork| {
        let name = names.binary_search(&work.name).unwrap_or_default() as u32;
        let kind = match work.kind {
            WorkKind::Kernel => 0,
            WorkKind::Copy => 1,
            WorkKind::Fill => 2,
        };
        let flags = u8::from(work.concurrent) | u8::from(work.first_use) << 1;
        let DeviceWork { event, stream, start_ns, duration_ns, charged_ns, bytes, .. } = *work;
        (event.0, kind, name, stream, start_ns, duration_ns, charged_ns, bytes, flags)
    };
    let entries = trace.device_work.iter().map(entry).collect();
    (names.iter().map(|&name| trace.text(name).to_owned()).collect(), entries)
}

fn graph_run_facts_of(trace: &Trace) -> Vec<(Option<u64>, Option<BatchId>)> {
    let runs = trace.graph_runs.iter();
    let is_known = runs.clone().any(|run| run.number.is_some() || run.batch.is_some());
    runs.filter(|_| is_known).map(|run| (run.number, run.batch)).collect()
}

pub(super) fn additions_of(trace: &Trace) -> Additions {
    let (kernels, device_work) = device_work_of(trace);
    Additions {
        version: 1,
        types: trace.types.recorded().map(type_entry).collect(),
        op_numbers: trace.op_numbers.iter().map(|(op, number)| (op.to_owned(), number)).collect(),
        graph_runs_inferred: trace.graph_runs_inferred,
        graph_runs: trace
            .graph_runs
            .iter()
            .map(|run| (run.scheduler, run.start_ns, run.end_ns))
            .collect(),
        graph_run_facts: graph_run_facts_of(trace),
        batches: trace.batches.clone(),
        context_changes: trace.context_changes.clone(),
        kernels,
        device_work,
        host_tasks: trace
            .host_tasks
            .iter()
            .map(|task| {
                let HostTask { what, thread, graph_run, start_ns, duration_ns, .. } = *task;
                let name = trace.text(task.name).to_owned();
                (what, name, thread, graph_run.map(|run| run.0), start_ns, duration_ns)
            })
            .collect(),
        buffers: trace.buffers.clone(),
        free_memory: trace.free_memory.clone(),
        sensors: trace.sensors.clone(),
        placement: PlacementEntries::of(trace),
        processes: ProcessEntries::of(trace),
        transfers: trace.transfers.clone(),
        graph_calls: trace.graph_calls.clone(),
        provenance: trace.provenance.clone(),
        coverage: trace.coverage.iter().map(CoverageEntry::from).collect(),
        losses: trace.losses.clone(),
        thread_shares: trace
            .events
            .thread_shares
            .iter()
            .map(|share| {
                let ThreadShare { event, thread, start_ns, duration_ns, wait_ns } = *share;
                (event.0, thread, start_ns, duration_ns, wait_ns)
            })
            .collect(),
    }
}

fn type_entry(info: &TypeInfo) -> TypeEntry {
    let TypeInfo { id, name, block_elements, block_bytes } = info.clone();
    TypeEntry { id, name, block_elements, block_bytes }
}
