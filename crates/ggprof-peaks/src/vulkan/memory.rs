//! Buffers.

use super::gpu::{Gpu, failed};
use ash::vk;
use std::ffi::c_void;
use std::ptr::null_mut;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The device's own memory.
    Device,
    /// The host's, where the device reaches it.
    Host,
}

pub(super) struct Buffer<'g> {
    gpu: &'g Gpu<'g>,
    pub(super) buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    /// Where the host sees it; null in the device's memory.
    mapped: *mut c_void,
    pub(super) bytes: u64,
}

impl<'g> Buffer<'g> {
    pub(super) fn new(gpu: &'g Gpu<'g>, bytes: u64, place: Place) -> Result<Self, String> {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        let wanted = vk::BufferCreateInfo::default().size(bytes).usage(usage);
        // SAFETY: the device lives as long as the buffer, which borrows it.
        let buffer = unsafe { gpu.device.create_buffer(&wanted, None) }.map_err(failed)?;
        let memory = vk::DeviceMemory::null();
        let mut made = Self { gpu, buffer, memory, mapped: null_mut(), bytes };
        made.back(place)?;
        Ok(made)
    }

    /// Puts memory behind it. What was made is freed with the buffer, also if this fails.
    fn back(&mut self, place: Place) -> Result<(), String> {
        let device = &self.gpu.device;
        // SAFETY: here and below, the buffer and its memory are this one's own.
        let needed = unsafe { device.get_buffer_memory_requirements(self.buffer) };
        let kind = self.memory_type(needed.memory_type_bits, place);
        let kind = kind.ok_or("the device has no memory of the kind")?;
        let wanted =
            vk::MemoryAllocateInfo::default().allocation_size(needed.size).memory_type_index(kind);
        // SAFETY: see above.
        unsafe {
            self.memory = device.allocate_memory(&wanted, None).map_err(failed)?;
            device.bind_buffer_memory(self.buffer, self.memory, 0).map_err(failed)?;
            if place == Place::Host {
                let no_flags = vk::MemoryMapFlags::empty();
                self.mapped =
                    device.map_memory(self.memory, 0, vk::WHOLE_SIZE, no_flags).map_err(failed)?;
                self.mapped.cast::<u8>().write_bytes(0, self.bytes as usize);
            }
        }
        Ok(())
    }

    /// The first that has all properties, else one without the last of them.
    fn memory_type(&self, allowed: u32, place: Place) -> Option<u32> {
        use vk::MemoryPropertyFlags as Is;
        let (needed, better) = match place {
            Place::Device => (Is::empty(), Is::DEVICE_LOCAL),
            // Memory that is not cached is slow to read.
            Place::Host => (Is::HOST_VISIBLE | Is::HOST_COHERENT, Is::HOST_CACHED),
        };
        let types = self.gpu.physical.memory.memory_types_as_slice();
        let find = |wanted: Is| {
            let fits = |(at, kind): &(u32, &vk::MemoryType)| {
                allowed & (1 << at) != 0 && kind.property_flags.contains(wanted)
            };
            (0..).zip(types).find(fits).map(|(at, _)| at)
        };
        find(needed | better).or_else(|| find(needed))
    }

    /// What the host sees; nothing of the device's memory.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        if self.mapped.is_null() {
            return &mut [];
        }
        // SAFETY: mapped and written as long as the buffer lives; commands that use it are waited for
        // where they are started.
        unsafe { std::slice::from_raw_parts_mut(self.mapped.cast(), self.bytes as usize) }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: no command uses it any more; freeing memory unmaps it, and null is ignored.
        unsafe {
            self.gpu.device.destroy_buffer(self.buffer, None);
            self.gpu.device.free_memory(self.memory, None);
        }
    }
}
