//! What devices did for the events, and what the host did that is no op.

use super::columns::Columns;
use super::events::uncharged;
use super::tables::since;
use ggprof_trace::{DeviceWork, StringId, Trace};
use serde_json::{Value, json};

/// The names that `work_name` counts through.
pub(super) fn kernel_names(trace: &Trace) -> Vec<StringId> {
    let mut names: Vec<StringId> = trace.device_work.iter().map(|work| work.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Columns in the order of time; `place` is where an event stands in the order of theirs.
pub(super) fn device_work(columns: &mut Columns, trace: &Trace, place: &[u64], start_ns: u64) {
    let names = kernel_names(trace);
    let mut order: Vec<&DeviceWork> = trace.device_work.iter().collect();
    order.sort_by_key(|work| work.start_ns);
    let each = || order.iter();
    let name = |name| names.binary_search(&name).unwrap_or_default() as u64;
    columns.steps("work_event", each().map(|work| place[work.event.0 as usize]));
    // Work is part of its event, and so never before the first one.
    columns.steps("work_start", each().map(|work| work.start_ns.saturating_sub(start_ns)));
    columns.plain("work_duration", each().map(|work| work.duration_ns));
    columns
        .plain("work_uncharged", each().map(|work| uncharged(work.duration_ns, work.charged_ns)));
    columns.plain("work_name", each().map(|work| name(work.name)));
    columns.plain("work_kind", each().map(|work| work.kind as u64));
    columns.plain("work_stream", each().map(|work| work.stream.into()));
    columns.plain("work_bytes", each().map(|work| work.bytes));
    let flags = |work: &&DeviceWork| u64::from(work.concurrent) | u64::from(work.first_use) << 1;
    columns.plain("work_flags", each().map(flags));
}

/// Tasks of the host, by start, which may be before the first event.
pub(super) fn host_tasks(trace: &Trace, start_ns: u64) -> Vec<Value> {
    let mut tasks: Vec<_> = trace.host_tasks.iter().collect();
    tasks.sort_by_key(|task| task.start_ns);
    let task = |task: &&ggprof_trace::HostTask| {
        json!({
            "what": task.what.name(),
            "name": trace.text(task.name),
            "thread": task.thread,
            "run": task.graph_run.map(|run| run.0),
            "start": since(task.start_ns, start_ns),
            "duration": task.duration_ns,
        })
    };
    tasks.iter().map(task).collect()
}
