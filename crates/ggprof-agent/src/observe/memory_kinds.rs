//! The kinds of memory that tensors are in: what ggml calls the type of their buffer, whose memory
//! it is, and what it is for. A program has a handful of them, and each keeps its number.

use ggprof_spool::layout::{self, MEMORY_ON_HOST};

use super::buffers::BufferFacts;
use super::instance::Instance;
use crate::digest::{digest, mix};
use crate::fault::fault_point;
use crate::ffi::api::Pointer;
use crate::ffi::tensor::Tensor;
use crate::recorder::definitions::Owner;
use crate::recorder::lane::HeldLane;

/// The number of the kind of memory that a tensor is in; 0 if it has no memory, or ggml cannot be
/// asked. A view is in the memory of the tensor that it shows.
pub(super) fn of_tensor(lane: &HeldLane<'_>, instance: &Instance, tensor: Tensor<'_>) -> u16 {
    let holder = tensor.view_source().unwrap_or(tensor);
    of_buffer(lane, instance, holder.buffer() as Pointer)
}

/// The same of a live buffer of the instance.
pub(super) fn of_buffer(lane: &HeldLane<'_>, instance: &Instance, buffer: Pointer) -> u16 {
    if buffer.is_null() {
        return 0;
    }
    BufferFacts::of(&instance.api, buffer).map_or(0, |facts| number(lane, &facts))
}

pub(super) fn number(lane: &HeldLane<'_>, facts: &BufferFacts) -> u16 {
    let BufferFacts { usage, is_on_host, type_name, device, .. } = facts;
    let flags = if *is_on_host { MEMORY_ON_HOST } else { 0 };
    let identity =
        mix(mix(digest(type_name), digest(device)), u64::from(*usage) << 8 | u64::from(flags));
    let mut interner = lane.recorder.interner();
    let (memory, is_new) = interner.memory_kind(identity);
    if is_new {
        fault_point!();
        let record = layout::MemoryKind {
            usage: *usage,
            memory: memory.into(),
            type_name: interner.lasting_text(lane, type_name),
            device: interner.lasting_text(lane, device),
            flags,
            ..Default::default()
        };
        lane.define_lasting(Owner::MemoryKind(memory.into()), &record.encode());
    }
    memory
}
