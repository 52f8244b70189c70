//! Labels that ggml puts on its work when it names its pipelines. Where it does so for us
//! alone they end here.

use ash::vk;

use crate::observe::vulkan::registration;

pub(super) fn stand_in_for(name: &[u8]) -> vk::PFN_vkVoidFunction {
    let function = match name {
        b"vkQueueBeginDebugUtilsLabelEXT" | b"vkQueueInsertDebugUtilsLabelEXT" => {
            let function: vk::PFN_vkQueueBeginDebugUtilsLabelEXT = on_queue;
            // SAFETY: a function pointer; whoever asked by name knows its type.
            unsafe { std::mem::transmute::<_, vk::PFN_vkVoidFunction>(function) }
        }
        b"vkQueueEndDebugUtilsLabelEXT" => {
            let function: vk::PFN_vkQueueEndDebugUtilsLabelEXT = end_on_queue;
            // SAFETY: as above.
            unsafe { std::mem::transmute::<_, vk::PFN_vkVoidFunction>(function) }
        }
        b"vkCmdBeginDebugUtilsLabelEXT" | b"vkCmdInsertDebugUtilsLabelEXT" => {
            let function: vk::PFN_vkCmdBeginDebugUtilsLabelEXT = in_buffer;
            // SAFETY: as above.
            unsafe { std::mem::transmute::<_, vk::PFN_vkVoidFunction>(function) }
        }
        b"vkCmdEndDebugUtilsLabelEXT" => {
            let function: vk::PFN_vkCmdEndDebugUtilsLabelEXT = end_in_buffer;
            // SAFETY: as above.
            unsafe { std::mem::transmute::<_, vk::PFN_vkVoidFunction>(function) }
        }
        _ => return None,
    };
    function.filter(|_| registration::labels_are_ours())
}

unsafe extern "system" fn on_queue(_: vk::Queue, _: *const vk::DebugUtilsLabelEXT<'_>) {}

unsafe extern "system" fn end_on_queue(_: vk::Queue) {}

unsafe extern "system" fn in_buffer(_: vk::CommandBuffer, _: *const vk::DebugUtilsLabelEXT<'_>) {}

unsafe extern "system" fn end_in_buffer(_: vk::CommandBuffer) {}
