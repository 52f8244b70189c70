//! Events by the clock of a device, and what the host did for the device.

use super::copies::{direction, of_direction};
use super::device::{self, Timed};
use super::events::{Builder, Place};
use crate::model::{
    EventKind, GraphRunId, HostTask, LossKind, Measured, NewEvent, NodeId, Signature, TaskKind,
    Trace,
};
use ggprof_spool::layout;
use hashbrown::HashMap;

/// The name of an event for kernels of which it is not known what they belong to.
const UNATTRIBUTED: &str = "unattributed";

impl Builder<'_> {
    /// An op by the clock of the device that computed it.
    pub(super) fn device_op(
        &mut self,
        trace: &mut Trace,
        key: (u32, u32),
        place: &Place,
        work: &[Timed<'_>],
    ) {
        let Some(node) = self.nodes.at(self.tables, trace, key, true) else {
            trace.lose(LossKind::DamagedRecord, || "an op's description is missing".to_owned());
            return;
        };
        let output = trace.signature(node).output;
        let bytes = trace.types.bytes_of(&output).unwrap_or(0);
        self.device_event(trace, (EventKind::Op, node, bytes), place, work);
    }

    fn device_event(
        &mut self,
        trace: &mut Trace,
        (kind, node, bytes): (EventKind, NodeId, u64),
        place: &Place,
        work: &[Timed<'_>],
    ) {
        let (start_ns, end_ns) = device::extent(work);
        let event = trace.events.push(NewEvent {
            split: place.split,
            graph_run: place.graph_run,
            start_ns,
            duration_ns: end_ns - start_ns,
            bytes,
            measured: Measured::Device,
            ..NewEvent::of(kind, node, place.backend)
        });
        device::attach((self.tables, &mut self.kernel_names), trace, event, work);
    }

    /// Work of devices that belongs to no node and no recorded copy gets separate events.
    pub(super) fn stray_work(&mut self, trace: &mut Trace) {
        let mut left: Vec<Timed<'_>> = std::mem::take(&mut self.device.stray);
        // Copies whose record is missing.
        left.extend(self.device.copies.drain().flat_map(|(_, work)| work));
        left.sort_by_key(|work| work.start_ns);
        for work in left {
            let record = work.record;
            let Some(&backend) = self.backends.get(&record.backend) else { continue };
            let split = self.tables.splits.get(&record.split).map(|split| &split.begin);
            let graph_run = split.and_then(|begin| self.runs.get(&begin.run).copied());
            if record.split != layout::NONE && graph_run.is_none() {
                // Of a run that is not counted.
                continue;
            }
            let place =
                Place { graph_run, backend, split: split.map_or(-1, |begin| begin.index.into()) };
            let kind = match device::what(record) {
                layout::WORK_COPY => EventKind::Copy,
                _ => EventKind::Op,
            };
            let named = self.tables.text(record.name);
            let mut op = |name| Signature::of_op(trace.strings.intern(name));
            let (signature, extra) = match device::what(record) {
                layout::WORK_COPY => {
                    let copied = direction(record.flags >> layout::WORK_DIRECTION_BIT);
                    (of_direction(trace, copied), named)
                }
                layout::WORK_FILL => (op(if named.is_empty() { "fill" } else { named }), ""),
                _ => (op(UNATTRIBUTED), ""),
            };
            let extra = (!extra.is_empty()).then(|| trace.strings.intern(extra));
            let signature = Signature { extra, ..signature };
            let node = trace.nodes.intern(signature, extra, &[]);
            self.device_event(trace, (kind, node, record.bytes), &place, &[work]);
        }
    }

    pub(super) fn host_tasks(&self, trace: &mut Trace) {
        // Kinds of a later format are passed over.
        let known = |task: &&layout::HostTask| task.what == layout::TASK_PIPELINE_COMPILE;
        for task in self.tables.host_tasks.iter().filter(known) {
            let split = self.tables.splits.get(&task.split);
            let (start_ns, duration_ns) = self.span(task.start, task.end);
            let name = trace.strings.intern(self.tables.text(task.name));
            trace.host_tasks.push(HostTask {
                what: TaskKind::PipelineCompile,
                name,
                thread: task.os_thread,
                graph_run: split.and_then(|split| self.runs.get(&split.begin.run).copied()),
                start_ns,
                duration_ns,
            });
        }
    }

    /// How long the program waited for the results of graph runs that went on when their calls
    /// had returned: those of devices. Only the first wait for a run counts; later ones return at
    /// once.
    pub(super) fn waits(&self, trace: &mut Trace) {
        let mut pending = vec![false; trace.graph_runs.len()];
        let is_elsewhere = |measured: &Measured| {
            matches!(measured, Measured::HostCall | Measured::Device | Measured::Modelled)
        };
        for (stretch, events) in trace.events.stretches() {
            let goes_on = || trace.events.measured_of(events).iter().any(is_elsewhere);
            if let Some(run) = stretch.graph_run.filter(|_| goes_on()) {
                pending[run.0 as usize] = true;
            }
        }
        let mut runs: HashMap<u32, Vec<GraphRunId>> = HashMap::new();
        for (run, id) in trace.graph_runs.iter().zip((0..).map(GraphRunId)) {
            runs.entry(run.scheduler).or_default().push(id);
        }
        let mut waits: Vec<&layout::Synchronize> = self.tables.waits.iter().collect();
        waits.sort_by_key(|wait| wait.start);
        let name = trace.strings.intern("");
        for wait in waits {
            let Some(runs) = runs.get(&wait.scheduler) else { continue };
            let (start_ns, duration_ns) = self.span(wait.start, wait.end);
            let run_at = |id: &GraphRunId| &trace.graph_runs[id.0 as usize];
            let begun = runs.partition_point(|run| run_at(run).start_ns <= start_ns);
            let Some(&id) = begun.checked_sub(1).map(|last| &runs[last]) else { continue };
            if pending[id.0 as usize] {
                pending[id.0 as usize] = start_ns < run_at(&id).end_ns;
                trace.host_tasks.push(HostTask {
                    what: TaskKind::Wait,
                    name,
                    thread: wait.os_thread,
                    graph_run: Some(id),
                    start_ns,
                    duration_ns,
                });
            }
        }
    }
}
