//! The APIs with which ggml's libraries give work to devices. Each has its own folder, which holds
//! all that is known about it. The rest of the agent uses them through `observe::device_api` and
//! names none of them.

mod cuda;
#[cfg(test)]
mod fake;
mod vulkan;

use crate::config::{Environment, value_of};
use crate::observe::device_api::DeviceApi;

/// All of them: to add another, write its folder, and add it here and above.
pub(crate) static APIS: &[&dyn DeviceApi] = &[
    &vulkan::VulkanApi,
    &cuda::CudaApi,
    #[cfg(test)]
    &fake::FakeApi,
];

/// Whether one of them looks at this variable (`NAME=value`).
#[unsafe(link_section = ".text.asleep")]
pub(crate) fn reads(variable: &[u8]) -> bool {
    APIS.iter().flat_map(|api| api.variables()).any(|name| value_of(variable, name).is_some())
}

/// Reads the settings of each.
pub(crate) fn understand(environment: &Environment) -> Result<(), String> {
    APIS.iter().try_for_each(|api| api.understand(environment))
}

#[cfg(test)]
mod tests {
    use super::{cuda, vulkan};

    /// Names and order of the page that people read.
    #[test]
    fn the_document_lists_their_locks_in_this_order() {
        let document = include_str!("../../../../ARCHITECTURE.md");
        let section = document.split("### Locks of devices").nth(1).expect("a section about them");
        let rows = section.split("\n## ").next().unwrap_or_default().lines();
        let listed: Vec<&str> =
            rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect();
        assert_eq!(listed, [cuda::RANKS, vulkan::RANKS].concat());
    }
}
