//! Instances and devices come and go.

use std::ffi::CStr;

use ash::vk;

use super::device_of;
use crate::config::Vulkan;
use crate::fail_open::{self, contained};
use crate::ffi::vulkan::commands::{DeviceCommands, InstanceCommands};
use crate::ffi::vulkan::dispatch_key;
use crate::ffi::vulkan::loader::Chain;
use crate::lifecycle;
use crate::observe::vulkan::device::{DEVICES, Device, INSTANCES, Instance, LEFT_ALONE};
use crate::observe::vulkan::device_creation::{self, Extended};
use crate::observe::vulkan::label_switch::LabelSwitch;
use crate::observe::vulkan::write;

/// How ggml names itself to Vulkan, in every version and application.
const APPLICATION: &[u8] = b"ggml";

pub(super) unsafe extern "system" fn create_instance(
    info: *const vk::InstanceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    instance: *mut vk::Instance,
) -> vk::Result {
    // SAFETY: the loader passes a valid create info, with its own link in the chain.
    let chain =
        unsafe { Chain::find((*info).p_next, vk::StructureType::LOADER_INSTANCE_CREATE_INFO) };
    let Some(chain) = chain else { return vk::Result::ERROR_INITIALIZATION_FAILED };
    chain.advance();
    let get = chain.get_instance_proc_addr;
    // SAFETY: the function of this name, which needs no instance.
    let create = unsafe {
        std::mem::transmute::<vk::PFN_vkVoidFunction, Option<vk::PFN_vkCreateInstance>>(get(
            vk::Instance::null(),
            c"vkCreateInstance".as_ptr(),
        ))
    };
    let Some(create) = create else { return vk::Result::ERROR_INITIALIZATION_FAILED };
    // SAFETY: what the loader would have called, with what it passed.
    let result = unsafe { create(info, allocator, instance) };
    if result == vk::Result::SUCCESS {
        // SAFETY: it was made just now.
        let handle = unsafe { *instance };
        // SAFETY: a live instance and the functions behind us.
        let find = |name: &CStr| unsafe { get(handle, name.as_ptr()) };
        // SAFETY: the loader passes a valid create info.
        let wanted = lifecycle::vulkan() != Vulkan::Off && unsafe { is_ggml(info) };
        let next = wanted.then(|| InstanceCommands::load(find)).flatten();
        let labels = LabelSwitch::default();
        let known = Instance { handle, get_instance_proc_addr: get, next, labels };
        // SAFETY: a live instance.
        INSTANCES.put(unsafe { dispatch_key(handle) }, Box::new(known));
    }
    result
}

/// # Safety
/// `info` is a valid create info.
unsafe fn is_ggml(info: *const vk::InstanceCreateInfo<'_>) -> bool {
    // SAFETY: the caller's contract; the application's part may be missing.
    let name = unsafe { (*info).p_application_info.as_ref() }.map(|own| own.p_application_name);
    // SAFETY: a C string, if there is one.
    name.filter(|name| !name.is_null())
        .is_some_and(|name| unsafe { CStr::from_ptr(name) }.to_bytes().starts_with(APPLICATION))
}

pub(super) unsafe extern "system" fn destroy_instance(
    instance: vk::Instance,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    if instance == vk::Instance::null() {
        return;
    }
    // SAFETY: a live instance, by the contract of the call.
    let key = unsafe { dispatch_key(instance) };
    let Some(known) = INSTANCES.find(key) else { return };
    INSTANCES.remove(key);
    // SAFETY: the function of this name, for this instance.
    let destroy =
        unsafe {
            std::mem::transmute::<vk::PFN_vkVoidFunction, Option<vk::PFN_vkDestroyInstance>>(
                (known.get_instance_proc_addr)(instance, c"vkDestroyInstance".as_ptr()),
            )
        };
    if let Some(destroy) = destroy {
        // SAFETY: what the loader would have called, with what it passed.
        unsafe { destroy(instance, allocator) };
    }
}

pub(super) unsafe extern "system" fn create_device(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    device: *mut vk::Device,
) -> vk::Result {
    const FAILED: vk::Result = vk::Result::ERROR_INITIALIZATION_FAILED;
    // SAFETY: a live physical device, whose key is its instance's.
    let known = INSTANCES.find(unsafe { dispatch_key(physical) });
    let known = known.and_then(|known| Some((known, known.next.as_ref()?)));
    let Some((instance, next)) = known else { return FAILED };
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
        unsafe { (next.create_device)(physical, info, allocator, device) }
    };
    // SAFETY: the program's own arguments of the call under way.
    let mut extended =
        contained(None, || Some(unsafe { Extended::new(instance, next, physical, info) }));
    let with_ours = extended.as_mut().map_or(FAILED, |extended| extended.with(info, create));
    let timed = with_ours == vk::Result::SUCCESS;
    // A driver that will not have our additions gets the program's own wishes.
    let result = if timed { with_ours } else { create(info) };
    if result == vk::Result::SUCCESS {
        // SAFETY: it was made just now, by the chain behind us.
        unsafe { take_in(instance, physical, *device, get, extended.as_deref(), timed) };
    }
    result
}

/// # Safety
/// `device` was just made from `physical`, which is the instance's; `get` is the function
/// behind us for it.
unsafe fn take_in(
    instance: &'static Instance,
    physical: vk::PhysicalDevice,
    device: vk::Device,
    get: vk::PFN_vkGetDeviceProcAddr,
    extended: Option<&Extended>,
    timed: bool,
) {
    // SAFETY: the caller's contract.
    let find = |name: &CStr| unsafe { get(device, name.as_ptr()) };
    let next = DeviceCommands::load(find);
    let (Some(next), Some(extended), Some(commands)) = (next, extended, &instance.next) else {
        // SAFETY: a live device.
        LEFT_ALONE.put(unsafe { dispatch_key(device) }, Box::new(get));
        return;
    };
    // SAFETY: the caller's contract.
    let families = unsafe { device_creation::timestamp_bits(commands, physical) };
    // SAFETY: as above.
    let properties = unsafe { device_creation::properties(commands, physical) };
    let clock = extended.clock(&properties, &families, find, timed);
    let untimed = if !timed || next.reset_query_pool.is_none() {
        "the driver does not let queries be reset from the host"
    } else if families.iter().all(|&mask| mask == 0) {
        "the device has no timestamps"
    } else {
        ""
    };
    let mode = lifecycle::vulkan();
    let known = Device::new(device, instance, get, next, mode, clock, families, untimed);
    // SAFETY: a live device.
    let known = DEVICES.put(unsafe { dispatch_key(device) }, Box::new(known));
    // What ggml uploads from now on is part of the recording.
    fail_open::guard((), |this| {
        let Some(recorder) = lifecycle::start_recording() else { return };
        let Some(lane) = recorder.lane(this.preferred_lane.get()) else { return };
        write::sample_clock(&lane, known, &mut known.clock.state());
    });
}

pub(super) unsafe extern "system" fn destroy_device(
    device: vk::Device,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    if device == vk::Device::null() {
        return;
    }
    // SAFETY: a live device, by the contract of the call.
    let Some(known) = (unsafe { device_of(device) }) else { return };
    contained((), || known.close());
    // SAFETY: as above.
    DEVICES.remove(unsafe { dispatch_key(device) });
    // SAFETY: what the program would have called, with what it passed.
    unsafe { (known.next.destroy_device)(device, allocator) };
}
