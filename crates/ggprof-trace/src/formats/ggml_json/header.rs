//! The parts of the file around the records: backends, and what ggprof adds.

use crate::EventId;
use crate::model::{
    Backend, BackendIndex, Coverage, DeviceType, GraphRun, GraphRunId, Loss, Provenance, Split,
    ThreadShare, Trace, TypeInfo,
};
use serde::{Deserialize, Serialize};

/// An entry of `backends`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BackendEntry {
    #[serde(default)]
    pub(super) id: i32,
    pub(super) name: Option<String>,
    pub(super) device: Option<String>,
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
    pub(super) graph_runs_inferred: bool,
    /// `[scheduler, start_ns, end_ns]`, in the order that `graph_run` of a record counts.
    pub(super) graph_runs: Vec<(u32, u64, u64)>,
    /// `[graph_run, index, backend_id, start_ns, end_ns]`.
    pub(super) splits: Vec<(u32, i32, i32, u64, u64)>,
    /// `[record, thread, start_ns, duration_ns, wait_ns]`.
    pub(super) thread_shares: Vec<(u32, u32, u64, u64, u64)>,
    pub(super) provenance: Option<Provenance>,
    pub(super) coverage: Vec<Coverage>,
    pub(super) losses: Vec<Loss>,
}

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
            device_type: DeviceType::from_ggml(entry.device_type),
        };
    }
}

pub(super) fn take_additions(additions: Additions, trace: &mut Trace) {
    trace.writer = "ggprof".to_owned();
    trace.graph_runs_inferred = additions.graph_runs_inferred;
    for TypeEntry { id, name, block_elements, block_bytes } in additions.types {
        trace.types.insert(TypeInfo { id, name, block_elements, block_bytes });
    }
    for (scheduler, start_ns, end_ns) in additions.graph_runs {
        trace.graph_runs.push(GraphRun { scheduler, start_ns, end_ns });
    }
    for (graph_run, index, backend_id, start_ns, end_ns) in additions.splits {
        let graph_run = GraphRunId(graph_run);
        let Some(backend) = trace.backend_with_id(backend_id) else { continue };
        trace.splits.push(Split { graph_run, index, backend, start_ns, end_ns });
    }
    trace.provenance = additions.provenance;
    trace.coverage = additions.coverage;
    for loss in additions.losses {
        trace.lose_many(loss.kind, loss.count, || loss.detail);
    }
    for (event, thread, start_ns, duration_ns, wait_ns) in additions.thread_shares {
        let event = EventId(event);
        let share = ThreadShare { event, thread, start_ns, duration_ns, wait_ns };
        trace.events.thread_shares.push(share);
    }
}

pub(super) fn additions_of(trace: &Trace) -> Additions {
    Additions {
        version: 1,
        types: trace.types.recorded().map(type_entry).collect(),
        graph_runs_inferred: trace.graph_runs_inferred,
        graph_runs: trace
            .graph_runs
            .iter()
            .map(|run| (run.scheduler, run.start_ns, run.end_ns))
            .collect(),
        splits: trace.splits.iter().map(|split| split_entry(split, trace)).collect(),
        provenance: trace.provenance.clone(),
        coverage: trace.coverage.clone(),
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

fn split_entry(split: &Split, trace: &Trace) -> (u32, i32, i32, u64, u64) {
    let backend_id = trace.backend(split.backend).id;
    (split.graph_run.0, split.index, backend_id, split.start_ns, split.end_ns)
}
