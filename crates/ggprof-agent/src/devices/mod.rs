//! The APIs with which ggml's libraries give work to devices. Each has its own folder, which holds
//! all that is known about it. The rest of the agent uses them through `observe::device_api` and
//! names none of them.

mod cuda;
#[cfg(test)]
mod fake;
mod vulkan;

use crate::config::Environment;
use crate::observe::device_api::DeviceApi;

/// All of them: to add another, write its folder, and add it here and above.
pub(crate) static KNOWN: &[&dyn DeviceApi] = &[
    &vulkan::Vulkan,
    &cuda::Cuda,
    #[cfg(test)]
    &fake::Fake,
];

/// Whether one of them looks at a variable of this name.
pub(crate) fn reads(name: &[u8]) -> bool {
    KNOWN.iter().flat_map(|api| api.variables()).any(|variable| variable.as_bytes() == name)
}

/// Reads the settings of each.
pub(crate) fn understand(environment: &Environment) -> Result<(), String> {
    KNOWN.iter().try_for_each(|api| api.understand(environment))
}
