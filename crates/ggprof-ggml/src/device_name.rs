//! Names of devices.

/// The interfaces through which ggml reaches devices that are named after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceInterface {
    Cuda,
    Hip,
    Vulkan,
}

/// The interface of a device, by its name: `CUDA0`, `Vulkan1`, `ROCm0`. The number is its place among
/// those that the program sees of them; older versions named some backends without one. `None` for all
/// other devices.
pub fn device_interface(name: &str) -> Option<(DeviceInterface, Option<u32>)> {
    let known = [
        ("CUDA", DeviceInterface::Cuda),
        ("ROCm", DeviceInterface::Hip),
        ("Vulkan", DeviceInterface::Vulkan),
    ];
    let of = |(word, interface)| Some((interface, name.strip_prefix(word)?.parse().ok()));
    known.into_iter().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::{DeviceInterface, device_interface};

    #[test]
    fn devices_are_named_after_their_interface() {
        for (name, interface) in [
            ("CUDA0", Some((DeviceInterface::Cuda, Some(0)))),
            ("CUDA", Some((DeviceInterface::Cuda, None))),
            ("ROCm1", Some((DeviceInterface::Hip, Some(1)))),
            ("Vulkan12", Some((DeviceInterface::Vulkan, Some(12)))),
            ("CPU", None),
            ("RPC0[127.0.0.1:50052]", None),
            ("", None),
        ] {
            assert_eq!(device_interface(name), interface, "{name}");
        }
    }
}
