//! Vulkan, as the loader shows it to a layer. The structs of Vulkan itself come from `ash`. Those
//! between the loader and its layers, which `ash` lacks, are in `loader`; `commands` holds the
//! functions of the next layer in the chain.

pub(crate) mod commands;
pub(crate) mod loader;

use ash::vk::Handle;

/// What objects of one instance, or of one device, have in common: the first word
/// of each is the address of the loader's table for it.
///
/// # Safety
/// `handle` is a dispatchable handle that the loader passed to the layer.
pub(crate) unsafe fn dispatch_key(handle: impl Handle) -> usize {
    // SAFETY: by the caller's contract a pointer to an object that begins so.
    unsafe { *(handle.as_raw() as *const usize) }
}
