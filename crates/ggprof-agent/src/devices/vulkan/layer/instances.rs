//! Creating and destroying instances: ggml's, and those of other code in the process, which are
//! only passed on.
//!
//! The layer asks for the next layer's functions when an instance is created, and never again:
//! later the loader (1.3.239 does) answers with the functions of the first layer, which lead back
//! here.

use std::ffi::CStr;
use std::sync::Arc;

use ash::vk;

use super::FAILED;
use crate::devices::vulkan::device::{VULKAN_INSTANCES, VulkanInstance};
use crate::devices::vulkan::ffi::commands::{InstanceCommands, PhysicalDeviceCommands};
use crate::devices::vulkan::ffi::dispatch_key;
use crate::devices::vulkan::ffi::loader::Chain;
use crate::devices::vulkan::label_switch::LabelSwitch;
use crate::devices::vulkan::settings::{self, Mode};
use crate::devices::vulkan::without_agent;
use crate::fault::fault_point;
use crate::observe::fail_open::contained;

/// How ggml names itself to Vulkan, in every version and application.
const APPLICATION: &[u8] = b"ggml";

pub(super) unsafe extern "system" fn create(
    info: *const vk::InstanceCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    instance: *mut vk::Instance,
) -> vk::Result {
    // SAFETY: the loader passes a valid create info, with its own link in the chain.
    let chain =
        unsafe { Chain::find((*info).p_next, vk::StructureType::LOADER_INSTANCE_CREATE_INFO) };
    let Some(chain) = chain else { return FAILED };
    chain.advance();
    let get = chain.get_instance_proc_addr;
    // SAFETY: the function of this name, which needs no instance.
    let create = unsafe {
        std::mem::transmute::<vk::PFN_vkVoidFunction, Option<vk::PFN_vkCreateInstance>>(get(
            vk::Instance::null(),
            c"vkCreateInstance".as_ptr(),
        ))
    };
    let Some(create) = create else { return FAILED };
    // SAFETY: what the loader would have called, with what it passed.
    let result = unsafe { create(info, allocator, instance) };
    if result != vk::Result::SUCCESS {
        return result;
    }
    // SAFETY: it was made just now, from this create info.
    let known = unsafe { take_in(*instance, get, is_ggml(info)) };
    if known { result } else { FAILED }
}

/// False where a function is missing that every driver has: without it nothing can be passed on.
///
/// # Safety
/// `handle` was just made by the chain behind us, of which `get` is the function for it.
unsafe fn take_in(handle: vk::Instance, get: vk::PFN_vkGetInstanceProcAddr, is_ggml: bool) -> bool {
    // SAFETY: the caller's contract.
    let find = |name: &CStr| unsafe { get(handle, name.as_ptr()) };
    let Some(next) = InstanceCommands::load(find) else { return false };
    if is_ggml {
        contained((), without_agent::note_use_of_ggml);
    }
    let wanted = is_ggml && settings::mode() != Mode::Off;
    let watch = || {
        fault_point!();
        PhysicalDeviceCommands::load(find)
    };
    // An instance that we have no functions of is only passed on.
    let watched = if wanted { contained(None, watch) } else { None };
    let labels = LabelSwitch::default();
    let known = VulkanInstance { handle, get_instance_proc_addr: get, next, watched, labels };
    // SAFETY: a live instance.
    VULKAN_INSTANCES.put(unsafe { dispatch_key(handle) }, Arc::new(known));
    true
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

pub(super) unsafe extern "system" fn destroy(
    instance: vk::Instance,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    if instance == vk::Instance::null() {
        return;
    }
    // Forgotten before it is destroyed: afterwards a new one may have its key.
    // SAFETY: a live instance, by the contract of the call.
    if let Some(known) = VULKAN_INSTANCES.remove(unsafe { dispatch_key(instance) }) {
        // SAFETY: what the loader would have called, with what it passed.
        unsafe { (known.next.destroy_instance)(instance, allocator) };
    }
}
