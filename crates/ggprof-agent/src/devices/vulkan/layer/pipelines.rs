//! Compute pipelines are compiled, named and destroyed.

use std::ffi::CStr;

use ash::vk::{self, Handle};

use super::{FAILED, device_of};
use crate::clock;
use crate::fault::fault_point;
use crate::observe::fail_open::contained;
use crate::observe::this_thread::ThisThread;

pub(super) unsafe extern "system" fn create(
    device: vk::Device,
    cache: vk::PipelineCache,
    count: u32,
    infos: *const vk::ComputePipelineCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    pipelines: *mut vk::Pipeline,
) -> vk::Result {
    // SAFETY: a live device, by the contract of the call.
    let Some(known) = (unsafe { device_of(device) }) else { return FAILED };
    let start = clock::ticks();
    let next = known.next.create_compute_pipelines;
    // SAFETY: what the program would have called, with what it passed.
    let result = unsafe { next(device, cache, count, infos, allocator, pipelines) };
    if result == vk::Result::SUCCESS {
        // SAFETY: the driver has filled in as many.
        let made = unsafe { std::slice::from_raw_parts(pipelines, count as usize) };
        contained((), || {
            fault_point!();
            ThisThread::with(|this| known.pipelines.note_new(this, made, start));
            known.instance.labels.expect_names(made.len());
        });
    }
    result
}

pub(super) unsafe extern "system" fn destroy(
    device: vk::Device,
    pipeline: vk::Pipeline,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: a live device, by the contract of the call.
    let Some(known) = (unsafe { device_of(device) }) else { return };
    contained((), || known.pipelines.forget(pipeline));
    // SAFETY: what the program would have called, with what it passed.
    unsafe { (known.next.destroy_pipeline)(device, pipeline, allocator) };
}

pub(super) unsafe extern "system" fn set_name(
    device: vk::Device,
    info: *const vk::DebugUtilsObjectNameInfoEXT<'_>,
) -> vk::Result {
    // SAFETY: a live device, by the contract of the call.
    let Some(known) = (unsafe { device_of(device) }) else { return vk::Result::SUCCESS };
    contained((), || {
        // SAFETY: the program passes a valid struct.
        let info = unsafe { &*info };
        if info.object_type == vk::ObjectType::PIPELINE && !info.p_object_name.is_null() {
            // SAFETY: a C string, by the contract of the call.
            let name = unsafe { CStr::from_ptr(info.p_object_name) };
            let pipeline = vk::Pipeline::from_raw(info.object_handle);
            known.pipelines.note_name(pipeline, name.to_bytes());
            known.instance.labels.note_name();
        }
    });
    // SAFETY: what the program would have called, with what it passed.
    known.next.set_object_name.map_or(vk::Result::SUCCESS, |next| unsafe { next(device, info) })
}
