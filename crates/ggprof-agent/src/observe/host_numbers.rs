//! Tensors of numbers in the host's memory: which of them may be read, and how far.

use super::instance::Instance;
use crate::ffi::api::{Pointer, text};
use crate::ffi::tensor::Tensor;

/// Whether a tensor holds numbers of 32 bits.
pub(super) fn has_numbers(instance: &Instance, tensor: Tensor<'_>) -> bool {
    let name = instance.api.ggml_type_name.map_or(&b""[..], |name| {
        // SAFETY: a type number read from a live tensor of this instance.
        text(unsafe { name(tensor.type_id() as i32) })
    });
    name == b"i32"
}

/// Where a tensor's data is, if so many bytes of it lie inside a buffer of the host's.
pub(super) fn readable(instance: &Instance, tensor: Tensor<'_>, bytes: usize) -> Option<*const u8> {
    let api = &instance.api;
    let buffer = tensor.view_source().unwrap_or(tensor).buffer() as Pointer;
    let (is_host, base, size) = (
        api.ggml_backend_buffer_is_host?,
        api.ggml_backend_buffer_get_base?,
        api.ggml_backend_buffer_get_size?,
    );
    // SAFETY: the buffer of a live tensor of this instance.
    if buffer.is_null() || !unsafe { is_host(buffer) } {
        return None;
    }
    // SAFETY: as above.
    let (base, size) = unsafe { (base(buffer) as usize, size(buffer)) };
    let from = tensor.data().checked_sub(base)?;
    let is_inside = tensor.data() != 0 && from.checked_add(bytes)? <= size;
    is_inside.then_some(tensor.data() as *const u8)
}
