//! Command buffers are submitted, and ggml sees that they have run.

use ash::vk;

use super::{FAILED, device_of, slice};
use crate::clock;
use crate::devices::vulkan::device::Device;
use crate::fault::fault_point;
use crate::observe::fail_open::contained;

pub(super) unsafe extern "system" fn submit(
    queue: vk::Queue,
    count: u32,
    submits: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: a live queue, by the contract of the call.
    let Some(device) = (unsafe { device_of(queue) }) else { return FAILED };
    // SAFETY: the program passed as many.
    let infos = unsafe { slice(submits, count) };
    let buffers = infos.iter().flat_map(|info| {
        // SAFETY: as above.
        unsafe { slice(info.p_command_buffers, info.command_buffer_count) }.iter().copied()
    });
    note_submitted(device, queue, buffers.clone());
    // SAFETY: what the program would have called, with what it passed.
    let result = unsafe { (device.next.queue_submit)(queue, count, submits, fence) };
    note_result(device, result, buffers);
    result
}

pub(super) unsafe extern "system" fn submit2(
    queue: vk::Queue,
    count: u32,
    submits: *const vk::SubmitInfo2<'_>,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: a live queue, by the contract of the call.
    let Some(device) = (unsafe { device_of(queue) }) else { return FAILED };
    // SAFETY: the program passed as many.
    let infos = unsafe { slice(submits, count) };
    let buffers = infos.iter().flat_map(|info| {
        // SAFETY: as above.
        let buffers = unsafe { slice(info.p_command_buffer_infos, info.command_buffer_info_count) };
        buffers.iter().map(|info| info.command_buffer)
    });
    note_submitted(device, queue, buffers.clone());
    let Some(next) = device.next.queue_submit2 else { return FAILED };
    // SAFETY: what the program would have called, with what it passed.
    let result = unsafe { next(queue, count, submits, fence) };
    note_result(device, result, buffers);
    result
}

/// Called before the device can have done any of the work.
fn note_submitted(
    device: &Device,
    queue: vk::Queue,
    buffers: impl Iterator<Item = vk::CommandBuffer>,
) {
    contained((), || {
        for handle in buffers {
            let found = device.buffers.find(handle);
            let Some(buffer) = found else { continue };
            // SAFETY: it is being submitted: the program does nothing else with it.
            let inner = unsafe { buffer.inner() };
            if inner.noted && !inner.recording.is_empty() {
                fault_point!();
                let now = clock::nanoseconds(libc::CLOCK_MONOTONIC);
                device.in_flight.push(queue, buffer, inner, now);
            }
        }
    });
}

fn note_result(
    device: &Device,
    result: vk::Result,
    buffers: impl Iterator<Item = vk::CommandBuffer>,
) {
    if result == vk::Result::SUCCESS {
        return;
    }
    contained((), || {
        device.note(result);
        for handle in buffers {
            let found = device.buffers.find(handle);
            // It was not submitted after all, and has done nothing.
            found.into_iter().for_each(|buffer| drop(device.in_flight.take_of(device, buffer)));
        }
    });
}

/// A call has shown that work ended, or that the device is lost.
fn seen(device: &Device, result: vk::Result) -> vk::Result {
    match result {
        vk::Result::SUCCESS | vk::Result::ERROR_DEVICE_LOST => contained((), || {
            device.note(result);
            fault_point!();
            device.poll();
        }),
        _ => {}
    }
    result
}

pub(super) unsafe extern "system" fn queue_wait_idle(queue: vk::Queue) -> vk::Result {
    // SAFETY: a live queue, by the contract of the call.
    let Some(device) = (unsafe { device_of(queue) }) else { return FAILED };
    // SAFETY: what the program would have called, with what it passed.
    seen(device, unsafe { (device.next.queue_wait_idle)(queue) })
}

pub(super) unsafe extern "system" fn device_wait_idle(handle: vk::Device) -> vk::Result {
    // SAFETY: a live device, by the contract of the call.
    let Some(device) = (unsafe { device_of(handle) }) else { return FAILED };
    // SAFETY: what the program would have called, with what it passed.
    seen(device, unsafe { (device.next.device_wait_idle)(handle) })
}

pub(super) unsafe extern "system" fn wait_for_fences(
    handle: vk::Device,
    count: u32,
    fences: *const vk::Fence,
    all: vk::Bool32,
    timeout: u64,
) -> vk::Result {
    // SAFETY: a live device, by the contract of the call.
    let Some(device) = (unsafe { device_of(handle) }) else { return FAILED };
    // SAFETY: what the program would have called, with what it passed.
    seen(device, unsafe { (device.next.wait_for_fences)(handle, count, fences, all, timeout) })
}

pub(super) unsafe extern "system" fn get_fence_status(
    handle: vk::Device,
    fence: vk::Fence,
) -> vk::Result {
    // SAFETY: a live device, by the contract of the call.
    let Some(device) = (unsafe { device_of(handle) }) else { return FAILED };
    // SAFETY: what the program would have called, with what it passed.
    seen(device, unsafe { (device.next.get_fence_status)(handle, fence) })
}

pub(super) unsafe extern "system" fn wait_semaphores(
    handle: vk::Device,
    info: *const vk::SemaphoreWaitInfo<'_>,
    timeout: u64,
) -> vk::Result {
    // SAFETY: a live device, by the contract of the call.
    let Some(device) = (unsafe { device_of(handle) }) else { return FAILED };
    let Some(next) = device.next.wait_semaphores else { return FAILED };
    // SAFETY: what the program would have called, with what it passed.
    seen(device, unsafe { next(handle, info, timeout) })
}
