//! A device with one queue, to which commands are handed and waited for.

use super::instance::{Instance, Physical};
use super::memory::Buffer;
use ash::{khr, vk};

/// Longer than anything here takes, even on a processor that plays the device.
const PATIENCE_NS: u64 = 20_000_000_000;

/// What is made on it borrows it, so it outlives all of that.
pub(super) struct Gpu<'i> {
    pub(super) physical: &'i Physical,
    pub(super) device: ash::Device,
    queue: vk::Queue,
    pool: vk::CommandPool,
    fence: vk::Fence,
    // The device's functions are the instance's.
    _instance: &'i Instance,
}

impl<'i> Gpu<'i> {
    pub(super) fn open(instance: &'i Instance, physical: &'i Physical) -> Result<Self, String> {
        let device = create(instance, physical)?;
        // SAFETY: the device was made with one queue of this family.
        let queue = unsafe { device.get_device_queue(physical.family, 0) };
        let mut gpu = Self {
            physical,
            device,
            queue,
            pool: vk::CommandPool::null(),
            fence: vk::Fence::null(),
            _instance: instance,
        };
        let pool = vk::CommandPoolCreateInfo::default().queue_family_index(physical.family);
        // SAFETY: the device lives, here and below as long as there is a `Gpu`.
        gpu.pool = unsafe { gpu.device.create_command_pool(&pool, None) }.map_err(failed)?;
        // SAFETY: as above.
        gpu.fence =
            unsafe { gpu.device.create_fence(&Default::default(), None) }.map_err(failed)?;
        Ok(gpu)
    }

    /// Records commands, runs them and waits until they are done.
    pub(super) fn run(&self, record: &dyn Fn(vk::CommandBuffer)) -> Result<(), String> {
        let wanted = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .command_buffer_count(1);
        // SAFETY: the pool is used by this thread only, and so are its buffers.
        let commands = unsafe { self.device.allocate_command_buffers(&wanted) }.map_err(failed)?;
        let done = self.run_in(commands[0], record);
        // SAFETY: not in use any more: it was waited for, or the device is lost.
        unsafe { self.device.free_command_buffers(self.pool, &commands) };
        done
    }

    fn run_in(
        &self,
        commands: vk::CommandBuffer,
        record: &dyn Fn(vk::CommandBuffer),
    ) -> Result<(), String> {
        let once = vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT;
        let begin = vk::CommandBufferBeginInfo::default().flags(once);
        let handed_in = [commands];
        let work = [vk::SubmitInfo::default().command_buffers(&handed_in)];
        let fences = [self.fence];
        // SAFETY: the buffer is fresh, it is recorded by this thread, and what its commands use lives
        // until the fence tells that they are done.
        unsafe {
            self.device.begin_command_buffer(commands, &begin).map_err(failed)?;
            record(commands);
            self.device.end_command_buffer(commands).map_err(failed)?;
            self.device.queue_submit(self.queue, &work, self.fence).map_err(failed)?;
            let waited = self.device.wait_for_fences(&fences, true, PATIENCE_NS);
            if waited.is_err() {
                // Nothing may be freed that the device still uses.
                self.device.device_wait_idle().map_err(failed)?;
            }
            waited.map_err(failed)?;
            self.device.reset_fences(&fences).map_err(failed)
        }
    }

    /// Zeros, so that every page of it exists.
    pub(super) fn fill(&self, buffer: &Buffer<'_>) -> Result<(), String> {
        self.run(&|commands| {
            // SAFETY: while recording, and the buffer was made for being copied to.
            unsafe { self.device.cmd_fill_buffer(commands, buffer.buffer, 0, vk::WHOLE_SIZE, 0) }
        })
    }

    pub(super) fn copy(&self, commands: vk::CommandBuffer, from: &Buffer<'_>, to: &Buffer<'_>) {
        let all = [vk::BufferCopy::default().size(from.bytes.min(to.bytes))];
        // SAFETY: while recording; both buffers were made for copies and have as many bytes.
        unsafe { self.device.cmd_copy_buffer(commands, from.buffer, to.buffer, &all) };
    }
}

impl Drop for Gpu<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing runs, and what was made on the device is gone; null handles are ignored.
        unsafe {
            self.device.destroy_fence(self.fence, None);
            self.device.destroy_command_pool(self.pool, None);
            self.device.destroy_device(None);
        }
    }
}

/// With those features that the shaders need and the device has.
fn create(instance: &Instance, physical: &Physical) -> Result<ash::Device, String> {
    let queues = [vk::DeviceQueueCreateInfo::default()
        .queue_family_index(physical.family)
        .queue_priorities(&[1.0])];
    let mut dot = vk::PhysicalDeviceShaderIntegerDotProductFeatures::default()
        .shader_integer_dot_product(true);
    let mut matrices =
        vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default().cooperative_matrix(true);
    let mut model =
        vk::PhysicalDeviceVulkanMemoryModelFeatures::default().vulkan_memory_model(true);
    let mut f16 = vk::PhysicalDeviceShaderFloat16Int8Features::default().shader_float16(true);
    let extensions = [khr::cooperative_matrix::NAME.as_ptr()];
    let mut wanted = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
    if physical.has_integer_dot_product {
        wanted = wanted.push_next(&mut dot);
    }
    if physical.matrices.is_some() {
        wanted = wanted
            .enabled_extension_names(&extensions)
            .push_next(&mut matrices)
            .push_next(&mut model)
            .push_next(&mut f16);
    }
    // SAFETY: a device of the instance, and features that it was asked for, or that come with the
    // extension.
    unsafe { instance.instance.create_device(physical.device, &wanted, None) }.map_err(failed)
}

pub(super) fn failed(result: vk::Result) -> String {
    format!("the driver failed: {result:?}")
}
