//! Creating and destroying devices. Those of ggml are created with what timing them needs. All
//! others, and those that lack something, are only passed on; they must be known all the same,
//! because the loader includes the layer for every device.

use std::ffi::CStr;
use std::sync::Arc;

use ash::vk;

use super::FAILED;
use crate::devices::vulkan::device::{
    ANY_DEVICES, AnyDevice, DEVICES, Device, VULKAN_INSTANCES, VulkanInstance,
};
use crate::devices::vulkan::device_creation::{self, Extended};
use crate::devices::vulkan::ffi::commands::{AnyDeviceCommands, DeviceCommands};
use crate::devices::vulkan::ffi::dispatch_key;
use crate::devices::vulkan::ffi::loader::Chain;
use crate::devices::vulkan::write;
use crate::fault::fault_point;
use crate::observe::fail_open::{self, contained};
use crate::recorder::current;

pub(super) unsafe extern "system" fn create(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    device: *mut vk::Device,
) -> vk::Result {
    // SAFETY: a live physical device, whose key is its instance's.
    let Some(instance) = VULKAN_INSTANCES.find(unsafe { dispatch_key(physical) }) else {
        return FAILED;
    };
    // SAFETY: the loader passes a valid create info, with its own link in the chain.
    let info = unsafe { &*info };
    // SAFETY: as above.
    let chain = unsafe { Chain::find(info.p_next, vk::StructureType::LOADER_DEVICE_CREATE_INFO) };
    let Some((chain, get)) = chain.and_then(|chain| {
        let get = chain.get_device_proc_addr?;
        Some((chain, get))
    }) else {
        return FAILED;
    };
    let create = |info: &vk::DeviceCreateInfo<'_>| {
        chain.advance();
        // SAFETY: what the loader would have called, with what it passed, or with our
        // additions to it.
        unsafe { (instance.next.create_device)(physical, info, allocator, device) }
    };
    // SAFETY: the program's own arguments of the call under way.
    let extend = |next| Some(unsafe { Extended::new(next, physical, info) });
    let mut extended = contained(None, || instance.watched.as_ref().and_then(extend));
    let with_ours = extended.as_mut().map_or(FAILED, |extended| extended.with(info, create));
    let timed = with_ours == vk::Result::SUCCESS;
    // If the driver refuses our additions, it gets the program's own requests.
    let result = if timed { with_ours } else { create(info) };
    if result != vk::Result::SUCCESS {
        return result;
    }
    // SAFETY: it was made just now.
    let device = unsafe { *device };
    // SAFETY: as above, for the next layer of the chain.
    if !unsafe { pass_on(device, get) } {
        return FAILED;
    }
    if let Some(extended) = extended {
        // SAFETY: as above, from this physical device.
        contained((), || unsafe { take_in(&instance, physical, device, get, &extended, timed) });
    }
    result
}

/// Passes on requests about a device, and its destruction. False if a function is missing that
/// every driver has.
///
/// # Safety
/// `device` was just made; `get` is the next layer's function for it.
unsafe fn pass_on(device: vk::Device, get: vk::PFN_vkGetDeviceProcAddr) -> bool {
    // SAFETY: the caller's contract.
    let next = AnyDeviceCommands::load(|name| unsafe { get(device, name.as_ptr()) });
    let Some(next) = next else { return false };
    // SAFETY: a live device.
    let key = unsafe { dispatch_key(device) };
    // Of an earlier device at the same address whose end was not reported.
    DEVICES.remove(key);
    ANY_DEVICES.put(key, Arc::new(AnyDevice { get_device_proc_addr: get, next }));
    true
}

/// Where something is missing that we need, the device is passed on and nothing else.
///
/// # Safety
/// `device` was just made from `physical`, which is the instance's; `get` is the function
/// behind us for it.
unsafe fn take_in(
    instance: &Arc<VulkanInstance>,
    physical: vk::PhysicalDevice,
    device: vk::Device,
    get: vk::PFN_vkGetDeviceProcAddr,
    extended: &Extended,
    timed: bool,
) {
    // SAFETY: the caller's contract.
    let find = |name: &CStr| unsafe { get(device, name.as_ptr()) };
    let (Some(next), Some(about)) = (DeviceCommands::load(find), &instance.watched) else { return };
    fault_point!();
    // SAFETY: the caller's contract.
    let families = unsafe { device_creation::timestamp_bits(about, physical) };
    // SAFETY: as above.
    let properties = unsafe { device_creation::properties(about, physical) };
    let clock = extended.clock(&properties, &families, find, timed);
    let untimed = extended.why_untimed(timed && next.reset_query_pool.is_some(), &families);
    let instance = Arc::clone(instance);
    let known =
        Device::new(device, instance, next, clock, families, properties.driver_version, untimed);
    // SAFETY: a live device.
    let key = unsafe { dispatch_key(device) };
    DEVICES.put(key, Box::new(known));
    // SAFETY: used within this call, which makes it.
    let Some(known) = (unsafe { DEVICES.find(key) }) else { return };
    // What ggml uploads from now on is part of the recording.
    fail_open::guard((), |this| {
        fault_point!();
        let Some(recorder) = current::start_recording() else { return };
        let Some(lane) = this.lane(recorder) else { return };
        write::sample_clock(&lane, known, &mut known.clock.state());
    });
}

pub(super) unsafe extern "system" fn destroy(
    device: vk::Device,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    if device == vk::Device::null() {
        return;
    }
    // SAFETY: a live device, by the contract of the call.
    let key = unsafe { dispatch_key(device) };
    // SAFETY: used within this call, until it is removed.
    if let Some(known) = unsafe { DEVICES.find(key) } {
        contained((), || known.close());
    }
    // Forgotten before it is destroyed: afterwards a new one may have its key.
    DEVICES.remove(key);
    if let Some(known) = ANY_DEVICES.remove(key) {
        // SAFETY: what the program would have called, with what it passed.
        unsafe { (known.next.destroy_device)(device, allocator) };
    }
}
