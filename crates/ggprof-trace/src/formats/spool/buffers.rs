//! The memory that tensors are in.

use super::tables::Tables;
use crate::model::{Buffer, BufferUsage, FreeMemory, LossKind, Trace};
use ggprof_spool::layout;

/// Whose memory the host's is, in ggml's words.
const HOST: &str = "CPU";

pub(super) fn take(tables: &Tables, trace: &mut Trace) {
    for (buffer, tensor) in tables.buffers.values() {
        let died_ns = Some(buffer.died_ns).filter(|&ns| ns != 0);
        if died_ns.is_some_and(|died| died < buffer.born_ns) {
            trace.lose(LossKind::DamagedRecord, || "a buffer dies before it is born".to_owned());
            continue;
        }
        trace.buffers.push(Buffer {
            device: device(tables, buffer).to_owned(),
            type_name: tables.text(buffer.type_name).to_owned(),
            usage: usage(buffer.usage),
            bytes: buffer.bytes,
            tensor: tensor.clone(),
            born_ns: buffer.born_ns,
            died_ns,
            process: None,
        });
    }
    trace.free_memory =
        tables.device_memory.values().map(|told| free_memory(tables, told)).collect();
}

fn free_memory(tables: &Tables, told: &layout::DeviceMemory) -> FreeMemory {
    FreeMemory {
        device: tables.text(told.device).to_owned(),
        free_bytes: told.free,
        total_bytes: told.total,
        at_ns: told.at_ns,
        process: None,
    }
}

/// Memory that a device has pinned is the host's. Before ggml knew devices, a type of memory was
/// called after its own.
fn device<'t>(tables: &'t Tables, buffer: &layout::Buffer) -> &'t str {
    if buffer.flags & layout::BUFFER_ON_HOST != 0 {
        return HOST;
    }
    match tables.text(buffer.device) {
        "" => tables.text(buffer.type_name),
        device => device,
    }
}

/// By ggml's numbers.
pub(super) fn usage(number: u8) -> BufferUsage {
    match number {
        0 => BufferUsage::Any,
        1 => BufferUsage::Weights,
        2 => BufferUsage::Compute,
        _ => BufferUsage::Unknown,
    }
}
