//! Labels that ggml puts on its work when it names its pipelines. If it does so only because of the
//! agent, they are not passed on.

use ash::vk;

use crate::devices::vulkan::registration;

pub(super) fn stand_in_for(name: &[u8]) -> vk::PFN_vkVoidFunction {
    let function = match name {
        b"vkQueueBeginDebugUtilsLabelEXT" | b"vkQueueInsertDebugUtilsLabelEXT" => {
            on_queue as *const ()
        }
        b"vkQueueEndDebugUtilsLabelEXT" => end_on_queue as *const (),
        b"vkCmdBeginDebugUtilsLabelEXT" | b"vkCmdInsertDebugUtilsLabelEXT" => {
            in_buffer as *const ()
        }
        b"vkCmdEndDebugUtilsLabelEXT" => end_in_buffer as *const (),
        _ => return None,
    };
    // SAFETY: a function of the type that whoever asks by this name calls it by.
    let function = unsafe { std::mem::transmute::<*const (), vk::PFN_vkVoidFunction>(function) };
    function.filter(|_| registration::labels_are_ours())
}

unsafe extern "system" fn on_queue(_: vk::Queue, _: *const vk::DebugUtilsLabelEXT<'_>) {}

unsafe extern "system" fn end_on_queue(_: vk::Queue) {}

unsafe extern "system" fn in_buffer(_: vk::CommandBuffer, _: *const vk::DebugUtilsLabelEXT<'_>) {}

unsafe extern "system" fn end_in_buffer(_: vk::CommandBuffer) {}
