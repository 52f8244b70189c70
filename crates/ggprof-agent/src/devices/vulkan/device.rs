//! The devices that ggml opened, and all instances.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ash::vk;

use super::clock::DeviceClock;
use super::command_buffers::{CommandBuffer, CommandBuffers};
use super::in_flight::{Finished, InFlight};
use super::keyed::Keyed;
use super::label_switch::LabelSwitch;
use super::pipelines::Pipelines;
use super::ranks;
use super::recording::Timing;
use super::registry::Registry;
use super::samples::Samples;
use super::write;
use crate::clock;
use crate::devices::vulkan::ffi::commands::{
    AnyDeviceCommands, DeviceCommands, InstanceCommands, PhysicalDeviceCommands,
};
use crate::devices::vulkan::settings::{self, Mode};
use crate::fault::fault_point;
use crate::lock::Ranked;
use crate::observe::fail_open;
use crate::recorder::current;

pub(crate) static VULKAN_INSTANCES: Keyed<VulkanInstance> = Keyed::new();
pub(crate) static DEVICES: Registry<Device> = Registry::new();
/// All devices, including those of other code in the process.
pub(crate) static ANY_DEVICES: Keyed<AnyDevice> = Keyed::new();

#[derive(Debug)]
pub(crate) struct VulkanInstance {
    pub(crate) handle: vk::Instance,
    pub(crate) get_instance_proc_addr: vk::PFN_vkGetInstanceProcAddr,
    pub(crate) next: InstanceCommands,
    /// For an instance that ggml made: its devices are looked at.
    pub(crate) watched: Option<PhysicalDeviceCommands>,
    pub(crate) labels: LabelSwitch,
}

/// A device that is only passed on: requests for its functions, and its destruction.
#[derive(Debug)]
pub(crate) struct AnyDevice {
    pub(crate) get_device_proc_addr: vk::PFN_vkGetDeviceProcAddr,
    pub(crate) next: AnyDeviceCommands,
}

/// A device that ggml opened.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) handle: vk::Device,
    pub(crate) instance: Arc<VulkanInstance>,
    pub(crate) next: DeviceCommands,
    pub(crate) mode: Mode,
    pub(crate) clock: DeviceClock,
    pub(crate) buffers: CommandBuffers,
    pub(crate) in_flight: InFlight,
    pub(crate) pipelines: Pipelines,
    pub(crate) samples: Samples,
    /// The bits that count of each queue family's timestamps; 0: it has none.
    pub(crate) families: Vec<u64>,
    pub(crate) driver_version: u32,
    /// Why nothing on this device can be timed, empty where it can.
    pub(crate) untimed: &'static str,
    /// Query pools of command buffers that are gone.
    spare_pools: Ranked<{ ranks::QUERY_POOLS }, Vec<vk::QueryPool>>,
    /// Backends of which the recording says how their kernels are seen.
    pub(crate) covered: Ranked<{ ranks::DEVICE_COVERAGE }, Vec<u32>>,
    /// The backend seen last: what is done outside any split is done for it.
    pub(crate) backend: AtomicU32,
    lost: AtomicBool,
}

impl Device {
    pub(crate) fn new(
        handle: vk::Device,
        instance: Arc<VulkanInstance>,
        next: DeviceCommands,
        clock: DeviceClock,
        families: Vec<u64>,
        driver_version: u32,
        untimed: &'static str,
    ) -> Device {
        Device {
            handle,
            instance,
            next,
            mode: settings::mode(),
            clock,
            families,
            driver_version,
            untimed,
            buffers: CommandBuffers::default(),
            in_flight: InFlight::default(),
            pipelines: Pipelines::default(),
            samples: Samples::new(current::budget_permille()),
            spare_pools: Ranked::default(),
            covered: Ranked::default(),
            backend: AtomicU32::new(0),
            lost: AtomicBool::new(false),
        }
    }

    pub(crate) fn timing(&self) -> Timing {
        match self.mode {
            Mode::Pair => Timing::Pairs,
            Mode::Serial => Timing::Serial,
            Mode::Group | Mode::Sample | Mode::Off => Timing::Groups,
        }
    }

    /// Whether timestamps can be written into a command buffer of this queue family.
    pub(crate) fn can_time(&self, family: u32) -> bool {
        self.untimed.is_empty() && self.mask(family) != 0 && !self.is_lost()
    }

    pub(crate) fn mask(&self, family: u32) -> u64 {
        self.families.get(family as usize).copied().unwrap_or(0)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Notes the result of a call: a device that was lost is not called any more.
    pub(crate) fn note(&self, result: vk::Result) {
        if result == vk::Result::ERROR_DEVICE_LOST {
            self.lost.store(true, Ordering::Relaxed);
        }
    }

    /// Work was seen to have ended: reads the times that are there.
    pub(crate) fn poll(&self) {
        if self.in_flight.is_empty() {
            return;
        }
        // Inside one of the agent's own hooks nothing may be written; it is done the next time.
        let free = fail_open::guard(false, |_| true);
        if free {
            let finished = self.in_flight.take_finished(self);
            self.write(finished);
        }
    }

    /// The program says that a command buffer is not in use.
    pub(crate) fn settle(&self, buffer: &'static CommandBuffer) {
        let finished = self.in_flight.take_of(self, buffer);
        self.write(finished);
    }

    pub(crate) fn write(&self, finished: Vec<Finished>) {
        if finished.is_empty() {
            return;
        }
        let seen_ns = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        fail_open::guard((), |this| {
            let Some(recorder) = current::recording() else { return };
            let Some(lane) = this.lane(recorder) else { return };
            fault_point!();
            write::finished(&lane, self, finished, seen_ns);
        });
    }

    /// A pool whose queries are ready for use.
    pub(crate) fn make_query_pool(&self, queries: u32) -> Option<vk::QueryPool> {
        let spare = self.spare_pools.lock().pop();
        let pool = spare.or_else(|| self.create_query_pool(queries))?;
        let reset = self.next.reset_query_pool?;
        // SAFETY: our own pool, used by no command buffer; the feature for this was
        // switched on.
        unsafe { reset(self.handle, pool, 0, queries) };
        Some(pool)
    }

    fn create_query_pool(&self, queries: u32) -> Option<vk::QueryPool> {
        let info = vk::QueryPoolCreateInfo::default()
            .query_type(vk::QueryType::TIMESTAMP)
            .query_count(queries);
        let mut pool = vk::QueryPool::null();
        // SAFETY: the device lives: the program is recording commands for it.
        let result = unsafe {
            (self.next.create_query_pool)(self.handle, &info, std::ptr::null(), &mut pool)
        };
        (result == vk::Result::SUCCESS).then_some(pool)
    }

    /// The program is done with a command buffer, so its query pools are free for others.
    pub(crate) fn release(&self, buffer: &'static CommandBuffer) {
        let _freed = Freed { device: self, buffer };
        fault_point!();
        self.settle(buffer);
    }

    /// The program closes the device, so all of its work has ended.
    pub(crate) fn close(&self) {
        let finished = self.in_flight.take_all(self, |_| true);
        fault_point!();
        self.write(finished);
        for buffer in self.buffers.all() {
            self.release(buffer);
        }
        let pools = std::mem::take(&mut *self.spare_pools.lock());
        for pool in pools {
            // SAFETY: ours, and not in use: the program is about to destroy the device.
            unsafe { (self.next.destroy_query_pool)(self.handle, pool, std::ptr::null()) };
        }
    }
}

/// A command buffer that the program frees. Even if its results are unread, its handle may mean
/// another buffer from now on, and its query pools are free for others.
struct Freed<'d> {
    device: &'d Device,
    buffer: &'static CommandBuffer,
}

impl Drop for Freed<'_> {
    fn drop(&mut self) {
        // SAFETY: made in the command that frees it.
        let inner = unsafe { self.buffer.inner() };
        self.device.spare_pools.lock().append(&mut inner.stamps.pools);
        *inner = Default::default();
        self.device.buffers.forget(self.buffer);
    }
}
