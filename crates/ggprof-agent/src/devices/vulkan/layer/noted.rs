//! Commands that are noted: those of graphs that have their parts timed, the first ones of all
//! other graphs, and those outside of graphs. They allocate in the first graphs only, and lock only
//! for a pipeline's name.

use std::ptr::NonNull;

use ash::vk;

use super::{device_of, slice};
use crate::devices::vulkan::device::Device;
use crate::devices::vulkan::ffi::dispatch_key;
use crate::devices::vulkan::place::{self, Command};
use crate::devices::vulkan::samples::Sampled;
use crate::devices::vulkan::stamps::Here;
use crate::fault::fault_point;
use crate::observe::fail_open::contained;
use crate::observe::this_thread::ThisThread;
use crate::observe::visits::Timed;
use crate::recorder::gate::UNRECORDED;

/// Passes a command on, with what has to be put before and after it.
///
/// # Safety
/// `handle` is the live command buffer of a command under way, `next` the rest of it.
#[inline(always)]
pub(super) unsafe fn record(
    handle: vk::CommandBuffer,
    command: Command,
    next: impl FnOnce(&Device),
) {
    // SAFETY: the caller's contract.
    let Some(device) = (unsafe { device_of(handle) }) else { return };
    if is_passed_on() {
        return next(device);
    }
    let noted = contained(false, || before(device, handle, command));
    next(device);
    if noted {
        contained((), || after(device, handle));
    }
}

/// Whether this thread records a graph whose parts are not timed, or that is not recorded.
#[inline(always)]
fn is_passed_on() -> bool {
    ThisThread::with(|this| {
        // SAFETY: set for the length of the graph by the split that owns it, on this
        // thread only.
        let visits = unsafe { this.visits.get().as_ref() };
        visits.is_some_and(|visits| visits.timed == Timed::AsWhole) || this.run.get() == UNRECORDED
    })
}

/// False where nothing is noted.
fn before(device: &Device, handle: vk::CommandBuffer, command: Command) -> bool {
    ThisThread::with(|this| {
        let Some(buffer) = device.buffers.find(handle) else { return false };
        // SAFETY: called from a command about it.
        let inner = unsafe { buffer.inner() };
        if !inner.noted {
            return false;
        }
        let timed = inner.timed;
        let mut here = Here { device, buffer: handle, stamps: &mut inner.stamps, timed };
        // SAFETY: set for the length of the graph by the split that owns it, on this
        // thread only.
        if let Some(visits) = unsafe { this.visits.get().as_mut() } {
            match device.samples.sampled(device.mode, visits) {
                Sampled::InParts => {}
                Sampled::Begins(work) => {
                    inner.recording.mark(work, &mut here);
                    // SAFETY: the live command buffer of a command under way.
                    let key = unsafe { dispatch_key(handle) };
                    visits.pass_on(key, NonNull::from(&device.next).cast());
                    return false;
                }
                Sampled::Within => return false,
            }
        }
        let command = match command {
            Command::Dispatch(_) => Command::Dispatch(device.pipelines.find(inner.pipeline)),
            other => other,
        };
        fault_point!();
        let work = place::work(this, command);
        inner.recording.before(device.timing(), work, &mut here);
        true
    })
}

fn after(device: &Device, handle: vk::CommandBuffer) {
    let Some(buffer) = device.buffers.find(handle) else { return };
    // SAFETY: called from a command about it.
    let inner = unsafe { buffer.inner() };
    fault_point!();
    let timed = inner.timed;
    let mut here = Here { device, buffer: handle, stamps: &mut inner.stamps, timed };
    inner.recording.after(device.timing(), &mut here);
}

/// Passes on a barrier of ggml's, at which later commands wait.
///
/// # Safety
/// As for [`record`].
#[inline(always)]
pub(super) unsafe fn synchronise(handle: vk::CommandBuffer, next: impl FnOnce(&Device)) {
    // SAFETY: the caller's contract.
    let Some(device) = (unsafe { device_of(handle) }) else { return };
    if !is_passed_on() {
        contained((), || synchronised(device, handle));
    }
    next(device);
}

fn synchronised(device: &Device, handle: vk::CommandBuffer) {
    let Some(buffer) = device.buffers.find(handle) else { return };
    // SAFETY: called from a command about it.
    let inner = unsafe { buffer.inner() };
    if inner.noted {
        fault_point!();
        let timed = inner.timed;
        let mut here = Here { device, buffer: handle, stamps: &mut inner.stamps, timed };
        inner.recording.synchronised(device.timing(), &mut here);
    }
}

/// Passes on which pipeline the next dispatches are of.
///
/// # Safety
/// As for [`record`].
#[inline(always)]
pub(super) unsafe fn bind(
    handle: vk::CommandBuffer,
    (point, pipeline): (vk::PipelineBindPoint, vk::Pipeline),
    next: impl FnOnce(&Device),
) {
    // SAFETY: the caller's contract.
    let Some(device) = (unsafe { device_of(handle) }) else { return };
    if point == vk::PipelineBindPoint::COMPUTE && !is_passed_on() {
        contained((), || bound(device, handle, pipeline));
    }
    next(device);
}

fn bound(device: &Device, handle: vk::CommandBuffer, pipeline: vk::Pipeline) {
    let Some(buffer) = device.buffers.find(handle) else { return };
    // SAFETY: called from a command about it.
    let inner = unsafe { buffer.inner() };
    if inner.noted {
        inner.pipeline = pipeline;
    }
}

pub(super) unsafe extern "system" fn dispatch_base(
    buffer: vk::CommandBuffer,
    base_x: u32,
    base_y: u32,
    base_z: u32,
    x: u32,
    y: u32,
    z: u32,
) {
    let next = |device: &Device| {
        if let Some(next) = device.next.cmd_dispatch_base {
            // SAFETY: what the program would have called, with what it passed.
            unsafe { next(buffer, base_x, base_y, base_z, x, y, z) };
        }
    };
    // SAFETY: a live command buffer, by the contract of the call.
    unsafe { record(buffer, Command::Dispatch(None), next) };
}

pub(super) unsafe extern "system" fn copy_buffer2(
    buffer: vk::CommandBuffer,
    info: *const vk::CopyBufferInfo2<'_>,
) {
    // SAFETY: the program's own struct, with as many regions as it says.
    let copies = unsafe { slice((*info).p_regions, (*info).region_count) };
    let bytes = copies.iter().map(|region| region.size).sum();
    let next = |device: &Device| {
        if let Some(next) = device.next.cmd_copy_buffer2 {
            // SAFETY: what the program would have called, with what it passed.
            unsafe { next(buffer, info) };
        }
    };
    // SAFETY: a live command buffer, by the contract of the call.
    unsafe { record(buffer, Command::Copy(bytes), next) };
}

pub(super) unsafe extern "system" fn pipeline_barrier2(
    buffer: vk::CommandBuffer,
    info: *const vk::DependencyInfo<'_>,
) {
    let next = |device: &Device| {
        if let Some(next) = device.next.cmd_pipeline_barrier2 {
            // SAFETY: what the program would have called, with what it passed.
            unsafe { next(buffer, info) };
        }
    };
    // SAFETY: a live command buffer, by the contract of the call.
    unsafe { synchronise(buffer, next) };
}

pub(super) unsafe extern "system" fn wait_events(
    buffer: vk::CommandBuffer,
    count: u32,
    events: *const vk::Event,
    before: vk::PipelineStageFlags,
    after: vk::PipelineStageFlags,
    memory: u32,
    memory_barriers: *const vk::MemoryBarrier<'_>,
    buffers: u32,
    buffer_barriers: *const vk::BufferMemoryBarrier<'_>,
    images: u32,
    image_barriers: *const vk::ImageMemoryBarrier<'_>,
) {
    // SAFETY: what the program would have called, with what it passed.
    let next = |device: &Device| unsafe {
        (device.next.cmd_wait_events)(
            buffer,
            count,
            events,
            before,
            after,
            memory,
            memory_barriers,
            buffers,
            buffer_barriers,
            images,
            image_barriers,
        );
    };
    // SAFETY: a live command buffer, by the contract of the call.
    unsafe { synchronise(buffer, next) };
}
