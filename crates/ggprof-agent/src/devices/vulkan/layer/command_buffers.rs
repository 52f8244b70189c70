//! Command buffers are allocated, recorded and reused.

use ash::vk;

use super::{FAILED, device_of};
use crate::devices::vulkan::command_buffers::CommandBuffer;
use crate::devices::vulkan::device::Device;
use crate::devices::vulkan::stamps::Here;
use crate::fault::fault_point;
use crate::observe::fail_open::contained;
use crate::observe::this_thread::ThisThread;
use crate::recorder::current;

fn find(device: &Device, handle: vk::CommandBuffer) -> Option<&'static CommandBuffer> {
    device.buffers.find(handle)
}

pub(super) unsafe extern "system" fn create_pool(
    handle: vk::Device,
    info: *const vk::CommandPoolCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    pool: *mut vk::CommandPool,
) -> vk::Result {
    // SAFETY: a live device, by the contract of the call.
    let Some(device) = (unsafe { device_of(handle) }) else { return FAILED };
    // SAFETY: what the program would have called, with what it passed.
    let result = unsafe { (device.next.create_command_pool)(handle, info, allocator, pool) };
    if result == vk::Result::SUCCESS {
        // SAFETY: read and filled in by the call that has just returned.
        let (pool, family) = unsafe { (*pool, (*info).queue_family_index) };
        contained((), || device.buffers.note_pool(pool, family));
    }
    result
}

pub(super) unsafe extern "system" fn destroy_pool(
    handle: vk::Device,
    pool: vk::CommandPool,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: a live device, by the contract of the call.
    let Some(device) = (unsafe { device_of(handle) }) else { return };
    contained((), || {
        device.buffers.of_pool(pool).into_iter().for_each(|buffer| device.release(buffer));
        device.buffers.forget_pool(pool);
    });
    // SAFETY: what the program would have called, with what it passed.
    unsafe { (device.next.destroy_command_pool)(handle, pool, allocator) };
}

pub(super) unsafe extern "system" fn reset_pool(
    handle: vk::Device,
    pool: vk::CommandPool,
    flags: vk::CommandPoolResetFlags,
) -> vk::Result {
    // SAFETY: a live device, by the contract of the call.
    let Some(device) = (unsafe { device_of(handle) }) else { return FAILED };
    // Only to read what is left: a buffer's queries are made ready when it is begun.
    contained((), || device.poll());
    // SAFETY: what the program would have called, with what it passed.
    unsafe { (device.next.reset_command_pool)(handle, pool, flags) }
}

pub(super) unsafe extern "system" fn allocate(
    handle: vk::Device,
    info: *const vk::CommandBufferAllocateInfo<'_>,
    buffers: *mut vk::CommandBuffer,
) -> vk::Result {
    // SAFETY: a live device, by the contract of the call.
    let Some(device) = (unsafe { device_of(handle) }) else { return FAILED };
    // SAFETY: what the program would have called, with what it passed.
    let result = unsafe { (device.next.allocate_command_buffers)(handle, info, buffers) };
    // SAFETY: the program's own struct of the call that has just returned.
    let info = unsafe { &*info };
    if result == vk::Result::SUCCESS && info.level == vk::CommandBufferLevel::PRIMARY {
        // SAFETY: the driver has filled in as many.
        let made =
            unsafe { std::slice::from_raw_parts(buffers, info.command_buffer_count as usize) };
        contained((), || device.buffers.note_allocated(info.command_pool, made));
    }
    result
}

pub(super) unsafe extern "system" fn free(
    handle: vk::Device,
    pool: vk::CommandPool,
    count: u32,
    buffers: *const vk::CommandBuffer,
) {
    // SAFETY: a live device, by the contract of the call.
    let Some(device) = (unsafe { device_of(handle) }) else { return };
    if count > 0 && !buffers.is_null() {
        // SAFETY: the program passed as many.
        let freed = unsafe { std::slice::from_raw_parts(buffers, count as usize) };
        contained((), || {
            freed.iter().filter_map(|&one| find(device, one)).for_each(|one| device.release(one));
        });
    }
    // SAFETY: what the program would have called, with what it passed.
    unsafe { (device.next.free_command_buffers)(handle, pool, count, buffers) };
}

pub(super) unsafe extern "system" fn begin(
    handle: vk::CommandBuffer,
    info: *const vk::CommandBufferBeginInfo<'_>,
) -> vk::Result {
    // SAFETY: a live command buffer, by the contract of the call.
    let Some(device) = (unsafe { device_of(handle) }) else { return FAILED };
    // SAFETY: what the program would have called, with what it passed.
    let result = unsafe { (device.next.begin_command_buffer)(handle, info) };
    if result == vk::Result::SUCCESS {
        // SAFETY: the program's own struct of the call that has just returned.
        let once = unsafe { (*info).flags }.contains(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        contained((), || {
            find(device, handle).into_iter().for_each(|buffer| note_begun(device, buffer, once));
        });
    }
    result
}

/// A command buffer is recorded anew. Its earlier contents have run, or never will.
fn note_begun(device: &Device, buffer: &'static CommandBuffer, once: bool) {
    // SAFETY: called from the command that begins it.
    let inner = unsafe { buffer.inner() };
    if std::mem::take(&mut inner.in_flight) {
        fault_point!();
        device.settle(buffer);
    }
    fault_point!();
    inner.recording.clear();
    inner.stamps.reset(device);
    inner.pipeline = vk::Pipeline::null();
    inner.noted = once && current::recording().is_some();
    inner.timed = inner.noted && device.can_time(buffer.family());
}

pub(super) unsafe extern "system" fn end(handle: vk::CommandBuffer) -> vk::Result {
    // SAFETY: a live command buffer, by the contract of the call.
    let Some(device) = (unsafe { device_of(handle) }) else { return FAILED };
    contained((), || {
        let Some(buffer) = find(device, handle) else { return };
        // SAFETY: called from a command about it.
        let inner = unsafe { buffer.inner() };
        if inner.noted {
            fault_point!();
            let timed = inner.timed;
            let mut here = Here { device, buffer: handle, stamps: &mut inner.stamps, timed };
            inner.recording.end(device.timing(), &mut here);
            // SAFETY: set for the length of the graph by the split that owns it, on this
            // thread only.
            let visits = ThisThread::with(|this| unsafe { this.visits.get().as_ref() });
            let stamps = here.stamps.written;
            if let Some(work) = visits.and_then(|visits| device.samples.end(visits, stamps)) {
                inner.recording.mark(work, &mut here);
            }
        }
    });
    // SAFETY: what the program would have called, with what it passed.
    unsafe { (device.next.end_command_buffer)(handle) }
}

pub(super) unsafe extern "system" fn reset(
    handle: vk::CommandBuffer,
    flags: vk::CommandBufferResetFlags,
) -> vk::Result {
    // SAFETY: a live command buffer, by the contract of the call.
    let Some(device) = (unsafe { device_of(handle) }) else { return FAILED };
    contained((), || device.poll());
    // SAFETY: what the program would have called, with what it passed.
    unsafe { (device.next.reset_command_buffer)(handle, flags) }
}
