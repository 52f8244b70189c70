//! The loader, and what devices say of themselves.

use crate::library::Library;
use ash::{khr, vk};
use std::ffi::CStr;

const LIBRARY: &CStr = c"libvulkan.so.1";

pub(super) struct Instance {
    // Functions of the loader must be there as long as the instance.
    entry: ash::Entry,
    pub(super) instance: ash::Instance,
}

/// A device, and what it can.
pub(super) struct Physical {
    pub(super) device: vk::PhysicalDevice,
    pub(super) name: String,
    /// In one buffer that a shader reads.
    pub(super) most_bytes: u32,
    /// Of its own, or all that it can use.
    pub(super) memory_bytes: u64,
    pub(super) memory: vk::PhysicalDeviceMemoryProperties,
    /// The first family of queues that computes.
    pub(super) family: u32,
    pub(super) subgroup: u32,
    pub(super) has_integer_dot_product: bool,
    /// Sizes (rows, columns, depth) of f16 matrices that a subgroup multiplies, with sums of f32.
    pub(super) matrices: Option<[u32; 3]>,
}

impl Instance {
    /// `None` without a loader, or where it has no driver; an error if something does not work.
    pub(super) fn load() -> Option<Result<Self, String>> {
        let library = Library::open(LIBRARY)?;
        // SAFETY: Vulkan documents this signature for this name.
        let get_instance_proc_addr = unsafe { library.function(c"vkGetInstanceProcAddr")? };
        // SAFETY: the loader's own function, in a library that is never closed.
        let entry = unsafe { ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr }) };
        Self::create(entry)
    }

    fn create(entry: ash::Entry) -> Option<Result<Self, String>> {
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let wanted = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: a valid description; nothing of it is used after the call.
        let instance = unsafe { entry.create_instance(&wanted, None) };
        match instance {
            Ok(instance) => Some(Ok(Self { entry, instance })),
            Err(vk::Result::ERROR_INCOMPATIBLE_DRIVER) => None,
            Err(why) => Some(Err(format!("the loader failed: {why:?}"))),
        }
    }

    /// The devices that compute.
    pub(super) fn devices(&self) -> Result<Vec<Physical>, String> {
        // SAFETY: here and below the instance lives, and devices are its own.
        let devices = unsafe { self.instance.enumerate_physical_devices() };
        let devices = devices.map_err(|why| format!("no devices are listed: {why:?}"))?;
        Ok(devices.into_iter().filter_map(|device| self.physical(device)).collect())
    }

    fn physical(&self, device: vk::PhysicalDevice) -> Option<Physical> {
        let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut subgroup);
        // SAFETY: see above; the structs are filled in.
        let (memory, families) = unsafe {
            self.instance.get_physical_device_properties2(device, &mut properties);
            (
                self.instance.get_physical_device_memory_properties(device),
                self.instance.get_physical_device_queue_family_properties(device),
            )
        };
        let properties = properties.properties;
        let computes = |family: &vk::QueueFamilyProperties| {
            family.queue_flags.contains(vk::QueueFlags::COMPUTE)
        };
        Some(Physical {
            device,
            name: properties.device_name_as_c_str().ok()?.to_string_lossy().into_owned(),
            most_bytes: properties.limits.max_storage_buffer_range,
            memory_bytes: largest_heap(&memory),
            memory,
            family: families.iter().position(computes)? as u32,
            subgroup: subgroup.subgroup_size.max(1),
            has_integer_dot_product: self.has_integer_dot_product(device, properties.api_version),
            matrices: self.matrices(device, properties.api_version),
        })
    }

    fn has_integer_dot_product(&self, device: vk::PhysicalDevice, version: u32) -> bool {
        let mut products = vk::PhysicalDeviceShaderIntegerDotProductFeatures::default();
        let mut features = vk::PhysicalDeviceFeatures2::default().push_next(&mut products);
        if version < vk::API_VERSION_1_3 {
            return false;
        }
        // SAFETY: see above.
        unsafe { self.instance.get_physical_device_features2(device, &mut features) };
        products.shader_integer_dot_product == vk::TRUE
    }

    /// The largest product of f16 matrices that the device has an instruction for.
    fn matrices(&self, device: vk::PhysicalDevice, version: u32) -> Option<[u32; 3]> {
        let name = khr::cooperative_matrix::NAME;
        // SAFETY: see above.
        let extensions = unsafe { self.instance.enumerate_device_extension_properties(device) };
        let has_it = extensions.ok()?.iter().any(|it| it.extension_name_as_c_str() == Ok(name));
        if !has_it || version < vk::API_VERSION_1_3 {
            return None;
        }
        let functions = khr::cooperative_matrix::Instance::new(&self.entry, &self.instance);
        // SAFETY: the device has the extension.
        let kinds = unsafe { functions.get_physical_device_cooperative_matrix_properties(device) };
        let kinds = kinds.ok()?;
        let fitting = kinds.iter().filter(|kind| {
            let (f16, f32) = (vk::ComponentTypeKHR::FLOAT16, vk::ComponentTypeKHR::FLOAT32);
            [kind.a_type, kind.b_type] == [f16; 2]
                && [kind.c_type, kind.result_type] == [f32; 2]
                && kind.scope == vk::ScopeKHR::SUBGROUP
        });
        let sizes = fitting.map(|kind| [kind.m_size, kind.n_size, kind.k_size]);
        sizes.max_by_key(|size| size.iter().map(|&it| u64::from(it)).product::<u64>())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: what was made with it borrows it, and is gone.
        unsafe { self.instance.destroy_instance(None) };
    }
}

fn largest_heap(memory: &vk::PhysicalDeviceMemoryProperties) -> u64 {
    let own = memory.memory_heaps_as_slice().iter();
    let own = own.filter(|heap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL));
    own.map(|heap| heap.size).max().unwrap_or(0)
}
