//! The functions of the next layer in the chain, or of the driver.

use std::ffi::CStr;

use ash::vk;

/// Declares a table. Commands after `or` have a second name, from when they were an
/// extension; those of `optional` may be missing.
macro_rules! table {
    (
        $(#[$doc:meta])* $table:ident
        { $($field:ident: $pfn:ident = $name:literal,)* }
        $(optional { $($option:ident: $option_pfn:ident = $first:literal or $second:literal,)* })?
    ) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub(crate) struct $table {
            $(pub(crate) $field: vk::$pfn,)*
            $($(pub(crate) $option: Option<vk::$option_pfn>,)*)?
        }

        impl $table {
            /// `None` where a command is missing that every driver has.
            pub(crate) fn load(find: impl Fn(&CStr) -> vk::PFN_vkVoidFunction) -> Option<Self> {
                Some($table {
                    // SAFETY: the loader's answer for a name is a function of the
                    // type that Vulkan gives this name.
                    $($field: unsafe { std::mem::transmute::<unsafe extern "system" fn(), vk::$pfn>(
                        find($name)?,
                    ) },)*
                    // SAFETY: as above; both names have the same type.
                    $($($option: unsafe {
                        std::mem::transmute::<vk::PFN_vkVoidFunction, Option<vk::$option_pfn>>(
                            find($first).or_else(|| find($second)),
                        )
                    },)*)?
                })
            }
        }

        impl std::fmt::Debug for $table {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($table))
            }
        }
    };
}

table! {
    /// Of every instance.
    InstanceCommands {
        destroy_instance: PFN_vkDestroyInstance = c"vkDestroyInstance",
        create_device: PFN_vkCreateDevice = c"vkCreateDevice",
    }
}

table! {
    /// What is asked about the physical devices of an instance that ggml made.
    PhysicalDeviceCommands {
        get_properties: PFN_vkGetPhysicalDeviceProperties = c"vkGetPhysicalDeviceProperties",
        get_queue_families: PFN_vkGetPhysicalDeviceQueueFamilyProperties
            = c"vkGetPhysicalDeviceQueueFamilyProperties",
        enumerate_extensions: PFN_vkEnumerateDeviceExtensionProperties
            = c"vkEnumerateDeviceExtensionProperties",
    }
    optional {
        time_domains_khr: PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsKHR
            = c"vkGetPhysicalDeviceCalibrateableTimeDomainsKHR"
            or c"vkGetPhysicalDeviceCalibrateableTimeDomainsKHR",
        time_domains_ext: PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsKHR
            = c"vkGetPhysicalDeviceCalibrateableTimeDomainsEXT"
            or c"vkGetPhysicalDeviceCalibrateableTimeDomainsEXT",
    }
}

table! {
    /// Of every device.
    AnyDeviceCommands {
        destroy_device: PFN_vkDestroyDevice = c"vkDestroyDevice",
    }
}

table! {
    /// Of a device that ggml opened, its queues and command buffers.
    DeviceCommands {
        create_command_pool: PFN_vkCreateCommandPool = c"vkCreateCommandPool",
        destroy_command_pool: PFN_vkDestroyCommandPool = c"vkDestroyCommandPool",
        reset_command_pool: PFN_vkResetCommandPool = c"vkResetCommandPool",
        allocate_command_buffers: PFN_vkAllocateCommandBuffers = c"vkAllocateCommandBuffers",
        free_command_buffers: PFN_vkFreeCommandBuffers = c"vkFreeCommandBuffers",
        begin_command_buffer: PFN_vkBeginCommandBuffer = c"vkBeginCommandBuffer",
        end_command_buffer: PFN_vkEndCommandBuffer = c"vkEndCommandBuffer",
        reset_command_buffer: PFN_vkResetCommandBuffer = c"vkResetCommandBuffer",
        cmd_bind_pipeline: PFN_vkCmdBindPipeline = c"vkCmdBindPipeline",
        cmd_dispatch: PFN_vkCmdDispatch = c"vkCmdDispatch",
        cmd_dispatch_indirect: PFN_vkCmdDispatchIndirect = c"vkCmdDispatchIndirect",
        cmd_copy_buffer: PFN_vkCmdCopyBuffer = c"vkCmdCopyBuffer",
        cmd_fill_buffer: PFN_vkCmdFillBuffer = c"vkCmdFillBuffer",
        cmd_update_buffer: PFN_vkCmdUpdateBuffer = c"vkCmdUpdateBuffer",
        cmd_pipeline_barrier: PFN_vkCmdPipelineBarrier = c"vkCmdPipelineBarrier",
        cmd_wait_events: PFN_vkCmdWaitEvents = c"vkCmdWaitEvents",
        cmd_write_timestamp: PFN_vkCmdWriteTimestamp = c"vkCmdWriteTimestamp",
        queue_submit: PFN_vkQueueSubmit = c"vkQueueSubmit",
        queue_wait_idle: PFN_vkQueueWaitIdle = c"vkQueueWaitIdle",
        device_wait_idle: PFN_vkDeviceWaitIdle = c"vkDeviceWaitIdle",
        wait_for_fences: PFN_vkWaitForFences = c"vkWaitForFences",
        get_fence_status: PFN_vkGetFenceStatus = c"vkGetFenceStatus",
        create_compute_pipelines: PFN_vkCreateComputePipelines = c"vkCreateComputePipelines",
        destroy_pipeline: PFN_vkDestroyPipeline = c"vkDestroyPipeline",
        create_query_pool: PFN_vkCreateQueryPool = c"vkCreateQueryPool",
        destroy_query_pool: PFN_vkDestroyQueryPool = c"vkDestroyQueryPool",
        get_query_pool_results: PFN_vkGetQueryPoolResults = c"vkGetQueryPoolResults",
    }
    optional {
        cmd_dispatch_base: PFN_vkCmdDispatchBase = c"vkCmdDispatchBase" or c"vkCmdDispatchBaseKHR",
        cmd_copy_buffer2: PFN_vkCmdCopyBuffer2 = c"vkCmdCopyBuffer2" or c"vkCmdCopyBuffer2KHR",
        cmd_pipeline_barrier2: PFN_vkCmdPipelineBarrier2
            = c"vkCmdPipelineBarrier2" or c"vkCmdPipelineBarrier2KHR",
        queue_submit2: PFN_vkQueueSubmit2 = c"vkQueueSubmit2" or c"vkQueueSubmit2KHR",
        wait_semaphores: PFN_vkWaitSemaphores = c"vkWaitSemaphores" or c"vkWaitSemaphoresKHR",
        reset_query_pool: PFN_vkResetQueryPool = c"vkResetQueryPool" or c"vkResetQueryPoolEXT",
        set_object_name: PFN_vkSetDebugUtilsObjectNameEXT
            = c"vkSetDebugUtilsObjectNameEXT" or c"vkSetDebugUtilsObjectNameEXT",
    }
}
