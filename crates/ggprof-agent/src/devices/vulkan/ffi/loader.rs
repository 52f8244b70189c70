//! The interface between the Vulkan loader and its layers (`vk_layer.h`).

use std::ffi::c_void;

use ash::vk;

/// The version of the interface that is spoken here.
pub(crate) const INTERFACE_VERSION: u32 = 2;

/// `VkNegotiateLayerInterface`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Negotiation {
    pub(crate) s_type: u32,
    pub(crate) p_next: *mut c_void,
    pub(crate) version: u32,
    pub(crate) get_instance_proc_addr: Option<vk::PFN_vkGetInstanceProcAddr>,
    pub(crate) get_device_proc_addr: Option<vk::PFN_vkGetDeviceProcAddr>,
    pub(crate) get_physical_device_proc_addr: Option<vk::PFN_vkGetInstanceProcAddr>,
}

/// `VkLayerInstanceCreateInfo` and `VkLayerDeviceCreateInfo`: what the loader puts into the
/// chain of a create call. `link` is meant where `function` is 0.
#[repr(C)]
struct CreateInfo {
    s_type: vk::StructureType,
    p_next: *const c_void,
    function: i32,
    link: *mut Link,
}

const LINK_INFO: i32 = 0;

/// `VkLayerInstanceLink` and `VkLayerDeviceLink`: the next layer. The third word is a
/// function of physical devices for instances, `vkGetDeviceProcAddr` for devices.
#[repr(C)]
#[derive(Debug)]
struct Link {
    next: *mut Link,
    get_instance_proc_addr: vk::PFN_vkGetInstanceProcAddr,
    get_device_proc_addr: Option<vk::PFN_vkGetDeviceProcAddr>,
}

/// Our place in the chain of one create call.
#[derive(Debug)]
pub(crate) struct Chain {
    info: *mut CreateInfo,
    behind: *mut Link,
    pub(crate) get_instance_proc_addr: vk::PFN_vkGetInstanceProcAddr,
    pub(crate) get_device_proc_addr: Option<vk::PFN_vkGetDeviceProcAddr>,
}

impl Chain {
    /// # Safety
    /// `p_next` is the chain of a create info that the loader passed to the layer, and
    /// `s_type` the loader's struct for this kind of call.
    pub(crate) unsafe fn find(p_next: *const c_void, s_type: vk::StructureType) -> Option<Chain> {
        let mut at = p_next.cast_mut().cast::<CreateInfo>();
        // SAFETY: every struct of a chain begins with its type and the next one's address.
        while let Some(info) = unsafe { at.as_ref() } {
            if info.s_type == s_type && info.function == LINK_INFO {
                // SAFETY: the loader's own struct, so `link` is valid for this call.
                let link = unsafe { info.link.as_ref() }?;
                return Some(Chain {
                    info: at,
                    behind: link.next,
                    get_instance_proc_addr: link.get_instance_proc_addr,
                    get_device_proc_addr: link.get_device_proc_addr,
                });
            }
            at = info.p_next.cast_mut().cast();
        }
        None
    }

    /// Makes the next layer find its own link. Before every call down the chain: a
    /// call that failed has moved it on.
    pub(crate) fn advance(&self) {
        // SAFETY: found in the loader's chain, which lives as long as the create call;
        // the interface asks every layer to do this.
        unsafe { (*self.info).link = self.behind };
    }
}
