//! Vulkan behind the interface that the rest of the agent uses. The layer sees all work, whichever
//! library submits it, so most functions of the interface do nothing here.

use ggprof_spool::layout::CoveredWhy;

use super::device::{ANY_DEVICES, DEVICES, VULKAN_INSTANCES};
use super::settings::Mode;
use super::{command_buffers, label_switch, registration, settings};
use crate::config::Environment;
use crate::lock::HeldAtFork;
use crate::observe::device_api::DeviceApi;
use crate::patch::loaded_object::LoadedObject;

#[derive(Debug)]
pub(crate) struct VulkanApi;

impl DeviceApi for VulkanApi {
    fn name(&self) -> &'static str {
        "Vulkan"
    }

    #[unsafe(link_section = ".text.asleep")]
    fn variables(&self) -> &'static [&'static str] {
        registration::VARIABLES
    }

    fn understand(&self, environment: &Environment) -> Result<(), String> {
        settings::understand(environment)
    }

    #[unsafe(link_section = ".text.asleep")]
    fn prepare_environment(&self, environment: &Environment) {
        if Mode::from(environment) != Ok(Mode::Off) {
            registration::announce(environment);
        }
    }

    #[unsafe(link_section = ".text.asleep")]
    fn note_loaded(&self) {
        registration::provide_if_needed();
    }

    fn why_unseen(&self, library: &LoadedObject) -> Option<CoveredWhy> {
        registration::why_unseen(library)
    }

    fn look_in(&self, library: &LoadedObject) {
        label_switch::look_in(library);
    }

    fn is_in_use(&self) -> bool {
        !DEVICES.is_empty()
    }

    fn fork_lock(&self, number: usize) -> Option<&'static dyn HeldAtFork> {
        let spare = command_buffers::fork_lock();
        let all = [spare, VULKAN_INSTANCES.fork_lock(), ANY_DEVICES.fork_lock()];
        all.get(number).copied()
    }

    fn has_left_something(&self) -> bool {
        registration::has_made_something()
    }

    fn withdraw(&self) {
        registration::withdraw();
    }
}
