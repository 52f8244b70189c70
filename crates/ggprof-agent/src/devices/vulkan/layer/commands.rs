//! Commands as ggml records them. Most graphs do not have their parts timed, and their commands
//! reach the driver in ten instructions, without a note. `noted` has the other commands.

use ash::vk;

use super::{noted, slice};
use crate::devices::vulkan::device::Device;
use crate::devices::vulkan::ffi::commands::DeviceCommands;
use crate::devices::vulkan::ffi::dispatch_key;
use crate::devices::vulkan::place::Command;
use crate::observe::this_thread::ThisThread;

/// The next layer's functions, if this thread records a graph on this device whose commands are
/// not noted.
///
/// # Safety
/// `buffer` is the live command buffer of a command under way, within which the reference is
/// used.
#[inline(always)]
unsafe fn passed_on<'a>(buffer: vk::CommandBuffer) -> Option<&'a DeviceCommands> {
    ThisThread::with(|this| {
        // SAFETY: set for the length of the graph by the split that owns it, on this
        // thread only.
        let visits = unsafe { this.visits.get().as_ref() }?;
        // SAFETY: the caller's contract. Under this key `noted` has put the functions of the device
        // that has it, which lives while it has commands under way.
        unsafe { visits.passed_on(dispatch_key(buffer)).map(|next| next.cast().as_ref()) }
    })
}

fn copied(regions: &[vk::BufferCopy]) -> u64 {
    regions.iter().map(|region| region.size).sum()
}

/// Each command with what it takes, the next layer's function, and what is noted of it.
macro_rules! commands {
    ($($name:ident($($argument:ident: $type:ty),*) = $next:ident, $note:ident($($of:expr)?);)*) => { $(
        pub(super) unsafe extern "system" fn $name(
            buffer: vk::CommandBuffer,
            $($argument: $type),*
        ) {
            // Not inlined: its caller then needs no stack frame.
            #[inline(never)]
            unsafe extern "system" fn note(buffer: vk::CommandBuffer, $($argument: $type),*) {
                // SAFETY: what the program would have called, with what it passed.
                let next = |device: &Device| unsafe { (device.next.$next)(buffer, $($argument),*) };
                // SAFETY: a live command buffer, by the contract of the call.
                unsafe { noted::$note(buffer, $($of,)? next) };
            }
            // SAFETY: a live command buffer, by the contract of the call.
            match unsafe { passed_on(buffer) } {
                // SAFETY: what the program would have called, with what it passed.
                Some(next) => unsafe { (next.$next)(buffer, $($argument),*) },
                // SAFETY: the same command.
                None => unsafe { note(buffer, $($argument),*) },
            }
        }
    )* };
}

commands! {
    bind_pipeline(
        point: vk::PipelineBindPoint,
        pipeline: vk::Pipeline
    ) = cmd_bind_pipeline, bind((point, pipeline));
    dispatch(x: u32, y: u32, z: u32) = cmd_dispatch, record(Command::Dispatch(None));
    dispatch_indirect(
        sizes: vk::Buffer,
        offset: vk::DeviceSize
    ) = cmd_dispatch_indirect, record(Command::Dispatch(None));
    copy_buffer(
        source: vk::Buffer,
        target: vk::Buffer,
        count: u32,
        regions: *const vk::BufferCopy
    // The program passed as many.
    ) = cmd_copy_buffer, record(Command::Copy(copied(slice(regions, count))));
    fill_buffer(
        target: vk::Buffer,
        offset: vk::DeviceSize,
        size: vk::DeviceSize,
        value: u32
    // The size of the rest of a buffer is not known here.
    ) = cmd_fill_buffer, record(Command::Fill(if size == vk::WHOLE_SIZE { 0 } else { size }));
    update_buffer(
        target: vk::Buffer,
        offset: vk::DeviceSize,
        size: vk::DeviceSize,
        data: *const std::ffi::c_void
    ) = cmd_update_buffer, record(Command::Copy(size));
    pipeline_barrier(
        before: vk::PipelineStageFlags,
        after: vk::PipelineStageFlags,
        flags: vk::DependencyFlags,
        memory: u32,
        memory_barriers: *const vk::MemoryBarrier<'_>,
        buffers: u32,
        buffer_barriers: *const vk::BufferMemoryBarrier<'_>,
        images: u32,
        image_barriers: *const vk::ImageMemoryBarrier<'_>
    ) = cmd_pipeline_barrier, synchronise();
}
