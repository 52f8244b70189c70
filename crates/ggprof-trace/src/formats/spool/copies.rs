//! Copies between backends, by the host's clock or, if a device carried one out, by the device's.

use super::device;
use super::events::Builder;
use crate::model::{
    CopyDirection, EventKind, Measured, NewEvent, NodeId, Signature, Source, Tensor, Trace,
};
use ggprof_ggml::copied_tensor;
use ggprof_spool::layout::{self, CopyEvent};
use hashbrown::HashMap;
use std::cmp::Reverse;

/// Of one name. Programs that name nothing give the same one to tensors of all shapes.
const MOST_SHAPES: usize = 64;

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
                source_backend: self.backends.get(&copy.source_backend).copied(),
                split: split_after(splits.get(&copy.run), copy.start),
                graph_run,
                start_ns,
                duration_ns,
                bytes: copy.bytes,
                measured,
                ..NewEvent::of(EventKind::Copy, node, backend)
            });
            trace.copy_ends.extend(self.memories.ends(copy, event));
            device::attach((self.tables, &mut self.kernel_names), trace, event, &work);
        }
    }

    /// Tensors that nodes make or take, by name; for copies, which give only the name. One name may have
    /// several: an input is larger for a prompt than for a token. Those that nodes make come first, then in
    /// the order of their descriptions, the last before the others.
    fn tensors_by_name(&self) -> HashMap<u32, Vec<Tensor>> {
        let mut nodes: Vec<_> = self.tables.nodes.values().collect();
        nodes.sort_unstable_by_key(|(node, _)| Reverse(node.node));
        let made = nodes
            .iter()
            .map(|(node, _)| (node.name, Tensor { type_id: node.type_id as i32, ne: node.ne }));
        let taken = nodes
            .iter()
            .flat_map(|(_, sources)| sources)
            .map(|source| (source.name, Tensor { type_id: source.type_id as i32, ne: source.ne }));
        let mut tensors: HashMap<u32, Vec<Tensor>> = HashMap::new();
        for (name, tensor) in made.chain(taken) {
            let of_name = tensors.entry(name).or_default();
            if of_name.len() < MOST_SHAPES && !of_name.contains(&tensor) {
                of_name.push(tensor);
            }
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

    fn copied(
        &self,
        trace: &mut Trace,
        copy: &CopyEvent,
        shapes: &HashMap<u32, Vec<Tensor>>,
    ) -> NodeId {
        let named = if copy.source == layout::NONE { copy.target } else { copy.source };
        let of_name = shapes.get(&named).map_or(&[][..], Vec::as_slice);
        let tensor = the_copied(of_name, copy, |tensor| trace.types.bytes_of(tensor));
        let name = self.tables.text(named);
        let name = copied_tensor(name).unwrap_or(name);
        let name = (!name.is_empty()).then(|| trace.strings.intern(name));
        let signature = Signature {
            extra: name,
            sources: tensor
                .map(|tensor| Source { tensor, nb: [0; 4], slot: 0 })
                .into_iter()
                .collect(),
            ..of_direction(trace, direction(copy.flags))
        };
        trace.nodes.intern(signature, name, &[])
    }
}

/// The tensor whose size agrees; where only a part was copied, one that has such a part.
fn the_copied(
    of_name: &[Tensor],
    copy: &CopyEvent,
    bytes_of: impl Fn(&Tensor) -> Option<u64>,
) -> Option<Tensor> {
    let is_partial = copy.flags & layout::COPY_PARTIAL != 0;
    let is_it = |tensor: &&Tensor| match bytes_of(tensor) {
        Some(bytes) if is_partial => bytes >= copy.offset.saturating_add(copy.bytes),
        bytes => bytes == Some(copy.bytes),
    };
    of_name.iter().find(is_it).copied()
}

pub(super) fn direction(flags: u8) -> CopyDirection {
    match flags & 3 {
        layout::COPY_HOST_TO_DEVICE => CopyDirection::HostToDevice,
        layout::COPY_DEVICE_TO_HOST => CopyDirection::DeviceToHost,
        layout::COPY_DEVICE_TO_DEVICE => CopyDirection::DeviceToDevice,
        _ => CopyDirection::HostToHost,
    }
}

/// A copy of which nothing but the direction is known.
pub(super) fn of_direction(trace: &mut Trace, direction: CopyDirection) -> Signature {
    let op = trace.strings.intern(direction.op_name());
    Signature { copied: Some(direction), ..Signature::of_op(op) }
}

/// The split that a copy is made for: the next to start.
fn split_after(splits: Option<&Vec<(u64, i32)>>, ticks: u64) -> i32 {
    let Some(splits) = splits else { return -1 };
    let next = splits.partition_point(|(start, _)| *start < ticks);
    splits.get(next).or(splits.last()).map_or(-1, |(_, index)| *index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_copy_tells_which_tensor_of_a_name_it_was() {
        let tensor = |length: i64| Tensor { type_id: 0, ne: [length, 1, 1, 1] };
        let of_name = [tensor(1), tensor(512)];
        let bytes_of = |tensor: &Tensor| Some(tensor.ne[0] as u64 * 4);
        let found = |flags: u8, offset: u64, bytes: u64| {
            let copy = CopyEvent { flags, offset, bytes, ..Default::default() };
            the_copied(&of_name, &copy, bytes_of).map(|tensor| tensor.ne[0])
        };
        assert_eq!(found(0, 0, 4), Some(1));
        assert_eq!(found(0, 0, 2048), Some(512));
        assert_eq!(found(0, 0, 8), None);
        assert_eq!(found(layout::COPY_PARTIAL, 1024, 64), Some(512));
        assert_eq!(found(layout::COPY_PARTIAL, 0, 2), Some(1));
        assert_eq!(found(layout::COPY_PARTIAL, 2048, 1), None);
    }
}
