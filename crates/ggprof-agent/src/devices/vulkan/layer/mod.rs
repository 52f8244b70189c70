//! The agent as a Vulkan layer: the functions that the loader and ggml call in place of the
//! driver's, by name. Each passes its call on exactly once.
//!
//! They are `extern "system"`, as Vulkan defines them, and not `"C-unwind"`: they call the driver,
//! and no code of ggml whose exceptions could pass through.
//!
//! Only what ggml creates is observed. Instances of other code in the process (a window, a video)
//! and their devices are passed on: the layer sees only their creation and destruction, and they
//! get the functions of the next layer for everything else.

mod command_buffers;
mod commands;
mod devices;
mod instances;
mod labels;
mod noted;
mod pipelines;
mod queues;

use std::ffi::{CStr, c_char};

use ash::vk;

use crate::devices::vulkan::device::{ANY_DEVICES, DEVICES, Device, VULKAN_INSTANCES};
use crate::devices::vulkan::ffi::dispatch_key;
use crate::devices::vulkan::ffi::loader::{INTERFACE_VERSION, Negotiation};

/// Where the loader begins; the manifest names it.
///
/// # Safety
/// Called by the loader only, with a struct of its own.
#[unsafe(no_mangle)]
unsafe extern "system" fn ggprof_vulkan_negotiate(negotiation: *mut Negotiation) -> vk::Result {
    // SAFETY: the loader's struct, valid for the call.
    let Some(negotiation) = (unsafe { negotiation.as_mut() }) else {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    };
    if negotiation.version < INTERFACE_VERSION {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    }
    negotiation.version = INTERFACE_VERSION;
    negotiation.get_instance_proc_addr = Some(get_instance_proc_addr);
    negotiation.get_device_proc_addr = Some(get_device_proc_addr);
    negotiation.get_physical_device_proc_addr = None;
    vk::Result::SUCCESS
}

/// What a function returns that cannot find the one to pass its call on to.
const FAILED: vk::Result = vk::Result::ERROR_INITIALIZATION_FAILED;

const SET_NAME: &[u8] = b"vkSetDebugUtilsObjectNameEXT";

/// A function of ours under Vulkan's name; its type is checked here.
macro_rules! stand_in {
    ($pfn:ident, $function:path) => {{
        let function: vk::$pfn = $function;
        // SAFETY: a function pointer; the caller, which asked by name, knows its type.
        unsafe { std::mem::transmute::<vk::$pfn, vk::PFN_vkVoidFunction>(function) }
    }};
}

unsafe extern "system" fn get_instance_proc_addr(
    instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the loader passes a C string.
    let asked = unsafe { CStr::from_ptr(name) };
    let own = match asked.to_bytes() {
        b"vkGetInstanceProcAddr" => stand_in!(PFN_vkGetInstanceProcAddr, get_instance_proc_addr),
        b"vkCreateInstance" => stand_in!(PFN_vkCreateInstance, instances::create),
        b"vkDestroyInstance" => stand_in!(PFN_vkDestroyInstance, instances::destroy),
        _ => None,
    };
    if own.is_some() || instance == vk::Instance::null() {
        return own;
    }
    // SAFETY: a live instance, by the contract of the call.
    let known = VULKAN_INSTANCES.find(unsafe { dispatch_key(instance) })?;
    let own = match asked.to_bytes() {
        b"vkCreateDevice" => stand_in!(PFN_vkCreateDevice, devices::create),
        b"vkGetDeviceProcAddr" => stand_in!(PFN_vkGetDeviceProcAddr, get_device_proc_addr),
        // Functions of devices by an instance's extension: asked for in either way.
        SET_NAME if known.watched.is_some() => stand_in_for(SET_NAME),
        label if known.watched.is_some() => labels::stand_in_for(label),
        _ => None,
    };
    // SAFETY: the same question to who is behind us.
    own.or_else(|| unsafe { (known.get_instance_proc_addr)(instance, name) })
}

unsafe extern "system" fn get_device_proc_addr(
    device: vk::Device,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the loader passes a C string.
    let asked = unsafe { CStr::from_ptr(name) };
    // SAFETY: a live device, by the contract of the call.
    let known = ANY_DEVICES.find(unsafe { dispatch_key(device) })?;
    // SAFETY: the same question to who is behind us.
    let behind = unsafe { (known.get_device_proc_addr)(device, name) };
    let own = match asked.to_bytes() {
        b"vkGetDeviceProcAddr" => stand_in!(PFN_vkGetDeviceProcAddr, get_device_proc_addr),
        b"vkDestroyDevice" => stand_in!(PFN_vkDestroyDevice, devices::destroy),
        _ => None,
    };
    // SAFETY: a live device.
    if own.is_some() || unsafe { device_of(device) }.is_none() {
        return own.or(behind);
    }
    if let Some(label) = labels::stand_in_for(asked.to_bytes()) {
        return Some(label);
    }
    // The layer does not offer what the driver lacks, except names: ggml gives them to the
    // layer even if the next layer does not want them.
    if behind.is_some() || asked.to_bytes() == SET_NAME {
        return stand_in_for(asked.to_bytes()).or(behind);
    }
    None
}

fn stand_in_for(name: &[u8]) -> vk::PFN_vkVoidFunction {
    match name {
        b"vkCreateCommandPool" => stand_in!(PFN_vkCreateCommandPool, command_buffers::create_pool),
        b"vkDestroyCommandPool" => {
            stand_in!(PFN_vkDestroyCommandPool, command_buffers::destroy_pool)
        }
        b"vkResetCommandPool" => stand_in!(PFN_vkResetCommandPool, command_buffers::reset_pool),
        b"vkAllocateCommandBuffers" => {
            stand_in!(PFN_vkAllocateCommandBuffers, command_buffers::allocate)
        }
        b"vkFreeCommandBuffers" => stand_in!(PFN_vkFreeCommandBuffers, command_buffers::free),
        b"vkBeginCommandBuffer" => stand_in!(PFN_vkBeginCommandBuffer, command_buffers::begin),
        b"vkEndCommandBuffer" => stand_in!(PFN_vkEndCommandBuffer, command_buffers::end),
        b"vkResetCommandBuffer" => stand_in!(PFN_vkResetCommandBuffer, command_buffers::reset),
        b"vkCmdBindPipeline" => stand_in!(PFN_vkCmdBindPipeline, commands::bind_pipeline),
        b"vkCmdDispatch" => stand_in!(PFN_vkCmdDispatch, commands::dispatch),
        b"vkCmdDispatchBase" | b"vkCmdDispatchBaseKHR" => {
            stand_in!(PFN_vkCmdDispatchBase, noted::dispatch_base)
        }
        b"vkCmdDispatchIndirect" => {
            stand_in!(PFN_vkCmdDispatchIndirect, commands::dispatch_indirect)
        }
        b"vkCmdCopyBuffer" => stand_in!(PFN_vkCmdCopyBuffer, commands::copy_buffer),
        b"vkCmdCopyBuffer2" | b"vkCmdCopyBuffer2KHR" => {
            stand_in!(PFN_vkCmdCopyBuffer2, noted::copy_buffer2)
        }
        b"vkCmdFillBuffer" => stand_in!(PFN_vkCmdFillBuffer, commands::fill_buffer),
        b"vkCmdUpdateBuffer" => stand_in!(PFN_vkCmdUpdateBuffer, commands::update_buffer),
        b"vkCmdPipelineBarrier" => stand_in!(PFN_vkCmdPipelineBarrier, commands::pipeline_barrier),
        b"vkCmdPipelineBarrier2" | b"vkCmdPipelineBarrier2KHR" => {
            stand_in!(PFN_vkCmdPipelineBarrier2, noted::pipeline_barrier2)
        }
        b"vkCmdWaitEvents" => stand_in!(PFN_vkCmdWaitEvents, noted::wait_events),
        b"vkQueueSubmit" => stand_in!(PFN_vkQueueSubmit, queues::submit),
        b"vkQueueSubmit2" | b"vkQueueSubmit2KHR" => stand_in!(PFN_vkQueueSubmit2, queues::submit2),
        b"vkQueueWaitIdle" => stand_in!(PFN_vkQueueWaitIdle, queues::queue_wait_idle),
        b"vkDeviceWaitIdle" => stand_in!(PFN_vkDeviceWaitIdle, queues::device_wait_idle),
        b"vkWaitForFences" => stand_in!(PFN_vkWaitForFences, queues::wait_for_fences),
        b"vkGetFenceStatus" => stand_in!(PFN_vkGetFenceStatus, queues::get_fence_status),
        b"vkWaitSemaphores" | b"vkWaitSemaphoresKHR" => {
            stand_in!(PFN_vkWaitSemaphores, queues::wait_semaphores)
        }
        b"vkCreateComputePipelines" => stand_in!(PFN_vkCreateComputePipelines, pipelines::create),
        b"vkDestroyPipeline" => stand_in!(PFN_vkDestroyPipeline, pipelines::destroy),
        SET_NAME => {
            stand_in!(PFN_vkSetDebugUtilsObjectNameEXT, pipelines::set_name)
        }
        _ => None,
    }
}

/// The device of one of its objects.
///
/// # Safety
/// `handle` is a live dispatchable handle that the loader passed to the layer, in a call that
/// the reference is used within.
#[inline(always)]
unsafe fn device_of<'a>(handle: impl vk::Handle) -> Option<&'a Device> {
    // SAFETY: the caller's contract.
    unsafe { DEVICES.find(dispatch_key(handle)) }
}

/// # Safety
/// `first` is the first of `count`, or `count` is 0.
unsafe fn slice<'a, T>(first: *const T, count: u32) -> &'a [T] {
    if count == 0 || first.is_null() {
        return &[];
    }
    // SAFETY: the caller's contract.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}
