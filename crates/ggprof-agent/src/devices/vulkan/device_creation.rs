//! What must be switched on when a device is created so that it can be timed: resetting queries
//! from the host and, if the driver has it, reading the device's clock together with the host's.
//! The program's own requests stay as they are, and so does its memory, which may be read-only: the
//! agent's requests are added in copies.

use std::ffi::{CStr, c_char, c_void};

use ash::vk;

use super::clock::DeviceClock;
use crate::devices::vulkan::ffi::commands::PhysicalDeviceCommands;
use crate::fault::fault_point;

/// An extension that reads both clocks at once, with its functions. Only those of the one
/// that is switched on may be called: the loader ends the program otherwise.
#[derive(Clone, Copy)]
struct Calibrated {
    extension: &'static CStr,
    domains: fn(&PhysicalDeviceCommands) -> Option<AskDomains>,
    timestamps: &'static CStr,
}

type AskDomains = vk::PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsKHR;

const CALIBRATED: [Calibrated; 2] = [
    Calibrated {
        extension: ash::khr::calibrated_timestamps::NAME,
        domains: |next| next.time_domains_khr,
        timestamps: c"vkGetCalibratedTimestampsKHR",
    },
    Calibrated {
        extension: ash::ext::calibrated_timestamps::NAME,
        domains: |next| next.time_domains_ext,
        timestamps: c"vkGetCalibratedTimestampsEXT",
    },
];

/// The program's create info with our additions. They live here while it is used.
pub(crate) struct Extended {
    extensions: Vec<*const c_char>,
    host_reset: vk::PhysicalDeviceHostQueryResetFeatures<'static>,
    /// The program's own wish about that feature, if it has one.
    own: Option<bool>,
    calibrated: Option<Calibrated>,
}

impl Extended {
    /// # Safety
    /// `info` is the create info of a call under way, `physical` its device.
    pub(crate) unsafe fn new(
        next: &PhysicalDeviceCommands,
        physical: vk::PhysicalDevice,
        info: &vk::DeviceCreateInfo<'_>,
    ) -> Box<Extended> {
        let count = info.enabled_extension_count as usize;
        let mut extensions = Vec::with_capacity(count + 1);
        if count > 0 {
            // SAFETY: the program passed as many names.
            let own = unsafe { std::slice::from_raw_parts(info.pp_enabled_extension_names, count) };
            extensions.extend_from_slice(own);
        }
        // SAFETY: names of extensions are C strings.
        let has =
            |name: &CStr| extensions.iter().any(|&own| unsafe { CStr::from_ptr(own) } == name);
        let own = CALIBRATED.into_iter().find(|one| has(one.extension));
        // SAFETY: the caller's contract.
        let chosen = own.or_else(|| unsafe { offered(next, physical) });
        // SAFETY: as above; the device has this extension.
        let calibrated = chosen.filter(|one| unsafe { has_host_clock(next, physical, one) });
        if let Some(one) = calibrated.filter(|_| own.is_none()) {
            extensions.push(one.extension.as_ptr());
        }
        fault_point!();
        // SAFETY: the caller's contract.
        let own = unsafe { own_feature(info.p_next) };
        let host_reset = vk::PhysicalDeviceHostQueryResetFeatures {
            host_query_reset: vk::TRUE,
            ..Default::default()
        };
        Box::new(Extended { extensions, host_reset, own, calibrated })
    }

    /// Makes a call with the additions.
    pub(crate) fn with<R>(
        &mut self,
        info: &vk::DeviceCreateInfo<'_>,
        call: impl FnOnce(&vk::DeviceCreateInfo<'_>) -> R,
    ) -> R {
        let mut info = *info;
        info.enabled_extension_count = self.extensions.len() as u32;
        info.pp_enabled_extension_names = self.extensions.as_ptr();
        if self.own.is_none() {
            self.host_reset.p_next = info.p_next.cast_mut();
            info.p_next = std::ptr::from_ref(&self.host_reset).cast();
        }
        call(&info)
    }

    /// Why the device that was made cannot be timed, given whether it has what we added; empty
    /// where it can.
    pub(crate) fn why_untimed(&self, extended: bool, families: &[u64]) -> &'static str {
        if self.own == Some(false) {
            "the program does not let queries be reset from the host"
        } else if !extended {
            "the driver does not let queries be reset from the host"
        } else if families.iter().all(|&mask| mask == 0) {
            "the device has no timestamps"
        } else {
            ""
        }
    }

    /// The clock of the device that was made, given whether that was with our additions.
    pub(crate) fn clock(
        &self,
        properties: &vk::PhysicalDeviceProperties,
        families: &[u64],
        find: impl Fn(&CStr) -> vk::PFN_vkVoidFunction,
        extended: bool,
    ) -> DeviceClock {
        let mask = families.iter().copied().find(|&mask| mask != 0).unwrap_or(u64::MAX);
        let function = self.calibrated.filter(|_| extended).and_then(|one| find(one.timestamps));
        // SAFETY: the driver's function of this name has this type.
        let ask =
            function.map(|function| unsafe {
                std::mem::transmute::<
                    unsafe extern "system" fn(),
                    vk::PFN_vkGetCalibratedTimestampsKHR,
                >(function)
            });
        DeviceClock::new(properties.limits.timestamp_period, mask, ask)
    }
}

/// What the program's own chain says on whether queries can be reset from the host.
///
/// # Safety
/// `p_next` is the chain of a create info of a call under way.
unsafe fn own_feature(p_next: *const c_void) -> Option<bool> {
    let mut at = p_next.cast::<vk::BaseInStructure<'_>>();
    // SAFETY: every struct of a chain begins with its type and the next one's address.
    while let Some(part) = unsafe { at.as_ref() } {
        match part.s_type {
            vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_2_FEATURES => {
                let features = at.cast::<vk::PhysicalDeviceVulkan12Features<'_>>();
                // SAFETY: the type says that it is this struct.
                return Some(unsafe { (*features).host_query_reset } != vk::FALSE);
            }
            vk::StructureType::PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES => {
                let features = at.cast::<vk::PhysicalDeviceHostQueryResetFeatures<'_>>();
                // SAFETY: as above.
                return Some(unsafe { (*features).host_query_reset } != vk::FALSE);
            }
            _ => at = part.p_next,
        }
    }
    None
}

/// # Safety
/// A physical device of the instance whose functions these are.
unsafe fn offered(
    next: &PhysicalDeviceCommands,
    physical: vk::PhysicalDevice,
) -> Option<Calibrated> {
    let ask = next.enumerate_extensions;
    let mut count = 0;
    // SAFETY: the caller's contract; asks for the number only.
    unsafe { ask(physical, std::ptr::null(), &mut count, std::ptr::null_mut()) }.result().ok()?;
    let mut offered = vec![vk::ExtensionProperties::default(); count as usize];
    // SAFETY: room for as many.
    unsafe { ask(physical, std::ptr::null(), &mut count, offered.as_mut_ptr()) }.result().ok()?;
    let named = |name: &CStr| {
        offered.iter().any(|one| one.extension_name_as_c_str().is_ok_and(|own| own == name))
    };
    CALIBRATED.into_iter().find(|one| named(one.extension))
}

/// Whether the extension reads the clock that we read.
///
/// # Safety
/// A physical device of this instance that has the extension.
unsafe fn has_host_clock(
    next: &PhysicalDeviceCommands,
    physical: vk::PhysicalDevice,
    extension: &Calibrated,
) -> bool {
    let Some(ask) = (extension.domains)(next) else { return false };
    let mut domains = [vk::TimeDomainKHR::DEVICE; 16];
    let mut count = domains.len() as u32;
    // SAFETY: the caller's contract; `domains` has room for `count`.
    let result = unsafe { ask(physical, &mut count, domains.as_mut_ptr()) };
    if result != vk::Result::SUCCESS {
        return false;
    }
    let offered = domains.get(..count as usize).unwrap_or(&domains);
    offered.contains(&vk::TimeDomainKHR::CLOCK_MONOTONIC)
}

/// The bits that count of each queue family's timestamps.
///
/// # Safety
/// A physical device of this instance.
pub(crate) unsafe fn timestamp_bits(
    next: &PhysicalDeviceCommands,
    device: vk::PhysicalDevice,
) -> Vec<u64> {
    let ask = next.get_queue_families;
    let mut count = 0;
    // SAFETY: the caller's contract; asks for the number only.
    unsafe { ask(device, &mut count, std::ptr::null_mut()) };
    let mut families = vec![vk::QueueFamilyProperties::default(); count as usize];
    // SAFETY: room for as many.
    unsafe { ask(device, &mut count, families.as_mut_ptr()) };
    families.iter().map(|family| mask(family.timestamp_valid_bits)).collect()
}

fn mask(bits: u32) -> u64 {
    1_u64.checked_shl(bits).map_or(u64::MAX, |beyond| beyond - 1)
}

/// # Safety
/// A physical device of this instance.
pub(crate) unsafe fn properties(
    next: &PhysicalDeviceCommands,
    device: vk::PhysicalDevice,
) -> vk::PhysicalDeviceProperties {
    let mut properties = vk::PhysicalDeviceProperties::default();
    // SAFETY: the caller's contract.
    unsafe { (next.get_properties)(device, &mut properties) };
    properties
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn bits_that_count() {
        assert_eq!(mask(0), 0);
        assert_eq!(mask(36), (1 << 36) - 1);
        assert_eq!(mask(64), u64::MAX);
    }
}
