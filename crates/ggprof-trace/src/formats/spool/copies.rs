//! Copies between backends, by the host's clock or, if a device carried one out, by the device's.

use super::device;
use super::events::Builder;
use crate::model::{EventKind, Measured, NewEvent, NodeId, Signature, Source, Tensor, Trace};
use ggprof_ggml::copied_tensor;
use ggprof_spool::layout::{self, CopyEvent};
use hashbrown::HashMap;

impl Builder<'_> {
    pub(super) fn copies(&mut self, trace: &mut Trace) {
        let shapes = self.tensors_by_name();
        let splits = self.splits_by_run();
        for copy in &self.tables.copies {
            let work = self.device.copies.remove(&copy.start).unwrap_or_default();
            let Some(&backend) = self.backends.get(&copy.target_backend) else { continue };
            let graph_run = self.runs.get(&copy.run).copied();
            if copy.run != layout::NONE && graph_run.is_none() {
                // Of a run that is not counted.
                continue;
            }
            let node = self.copied(trace, copy, &shapes);
            let (mut start_ns, mut duration_ns) = self.span(copy.start, copy.end.max(copy.start));
            let is_async = copy.flags & layout::COPY_ASYNC != 0;
            let mut measured = if is_async { Measured::HostCall } else { Measured::Host };
            if !work.is_empty() {
                let (start, end) = device::extent(&work);
                (start_ns, duration_ns) = (start, end - start);
                measured = Measured::Device;
            }
            let event = trace.events.push(NewEvent {
                kind: EventKind::Copy,
                node,
                backend,
                source_backend: self.backends.get(&copy.source_backend).copied(),
                split: split_after(splits.get(&copy.run), copy.start),
                graph_run,
                start_ns,
                duration_ns,
                bytes: copy.bytes,
                measured,
                threads: None,
            });
            trace.copy_ends.extend(self.memories.ends(copy, event));
            device::attach((self.tables, &mut self.kernel_names), trace, event, &work);
        }
    }

    /// Tensors that nodes make or take, by name; for copies, which give only the name.
    fn tensors_by_name(&self) -> HashMap<u32, Tensor> {
        let mut tensors = HashMap::new();
        // Where nodes have the same name, the one that was described last counts.
        let mut nodes: Vec<_> = self.tables.nodes.values().collect();
        nodes.sort_unstable_by_key(|(node, _)| node.node);
        for (node, _) in &nodes {
            tensors.insert(node.name, Tensor { type_id: node.type_id as i32, ne: node.ne });
        }
        for source in nodes.iter().flat_map(|(_, sources)| sources) {
            let tensor = Tensor { type_id: source.type_id as i32, ne: source.ne };
            tensors.entry(source.name).or_insert(tensor);
        }
        tensors
    }

    /// Starts and indices of each run's splits, in order.
    fn splits_by_run(&self) -> HashMap<u32, Vec<(u64, i32)>> {
        let mut splits: HashMap<u32, Vec<(u64, i32)>> = HashMap::new();
        for split in self.tables.splits.values() {
            let begin = &split.begin;
            splits.entry(begin.run).or_default().push((begin.ticks, begin.index.into()));
        }
        splits.values_mut().for_each(|splits| splits.sort_unstable());
        splits
    }

    fn copied(&self, trace: &mut Trace, copy: &CopyEvent, shapes: &HashMap<u32, Tensor>) -> NodeId {
        // A name is the tensor's only if the size agrees, or if just a part was copied.
        let partial = copy.flags & layout::COPY_PARTIAL != 0;
        let named = if copy.source == layout::NONE { copy.target } else { copy.source };
        let tensor = shapes.get(&named).copied();
        let tensor =
            tensor.filter(|tensor| partial || trace.types.bytes_of(tensor) == Some(copy.bytes));
        let name = self.tables.text(named);
        let name = copied_tensor(name).unwrap_or(name);
        let name = (!name.is_empty()).then(|| trace.strings.intern(name));
        let signature = Signature {
            extra: name,
            sources: tensor
                .map(|tensor| Source { tensor, nb: [0; 4], slot: 0 })
                .into_iter()
                .collect(),
            ..Signature::of_op(trace.strings.intern(direction(copy.flags)))
        };
        trace.nodes.intern(signature, name, &[])
    }
}

pub(super) fn direction(flags: u8) -> &'static str {
    match flags & 3 {
        layout::COPY_HOST_TO_DEVICE => "copy_H2D",
        layout::COPY_DEVICE_TO_HOST => "copy_D2H",
        layout::COPY_DEVICE_TO_DEVICE => "copy_D2D",
        _ => "copy_H2H",
    }
}

/// The split that a copy is made for: the next to start.
fn split_after(splits: Option<&Vec<(u64, i32)>>, ticks: u64) -> i32 {
    let Some(splits) = splits else { return -1 };
    let next = splits.partition_point(|(start, _)| *start < ticks);
    splits.get(next).or(splits.last()).map_or(-1, |(_, index)| *index)
}
