//! Commands as ggml records them. Most graphs do not have their parts timed, and their commands
//! reach the driver in ten instructions, without a note. `noted` has the other commands.

use ash::vk;

use super::noted;
use crate::devices::vulkan::ffi::commands::DeviceCommands;
use crate::devices::vulkan::ffi::dispatch_key;
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

macro_rules! commands {
    ($($name:ident($($argument:ident: $type:ty),*) = $next:ident;)*) => { $(
        pub(super) unsafe extern "system" fn $name(
            buffer: vk::CommandBuffer,
            $($argument: $type),*
        ) {
            // SAFETY: a live command buffer, by the contract of the call.
            match unsafe { passed_on(buffer) } {
                // SAFETY: what the program would have called, with what it passed.
                Some(next) => unsafe { (next.$next)(buffer, $($argument),*) },
                // SAFETY: the same command.
                None => unsafe { noted::$name(buffer, $($argument),*) },
            }
        }
    )* };
}

commands! {
    bind_pipeline(point: vk::PipelineBindPoint, pipeline: vk::Pipeline) = cmd_bind_pipeline;
    dispatch(x: u32, y: u32, z: u32) = cmd_dispatch;
    dispatch_indirect(sizes: vk::Buffer, offset: vk::DeviceSize) = cmd_dispatch_indirect;
    copy_buffer(
        source: vk::Buffer,
        target: vk::Buffer,
        count: u32,
        regions: *const vk::BufferCopy
    ) = cmd_copy_buffer;
    fill_buffer(
        target: vk::Buffer,
        offset: vk::DeviceSize,
        size: vk::DeviceSize,
        value: u32
    ) = cmd_fill_buffer;
    update_buffer(
        target: vk::Buffer,
        offset: vk::DeviceSize,
        size: vk::DeviceSize,
        data: *const std::ffi::c_void
    ) = cmd_update_buffer;
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
    ) = cmd_pipeline_barrier;
}
