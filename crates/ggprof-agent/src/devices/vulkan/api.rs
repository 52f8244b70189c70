//! Vulkan behind the interface that the rest of the agent uses. The layer sees all work, whichever
//! library submits it, so most functions of the interface do nothing here.

use ggprof_spool::layout::CoveredWhy;

use super::device::{ANY_DEVICES, DEVICES, INSTANCES};
use super::settings::Mode;
use super::{command_buffers, label_switch, registration, settings};
use crate::config::Environment;
use crate::observe::device_api::{DeviceApi, LocksAtFork};
use crate::patch::loaded_object::LoadedObject;

#[derive(Debug)]
pub(crate) struct Vulkan;

impl DeviceApi for Vulkan {
    fn name(&self) -> &'static str {
        "Vulkan"
    }

    fn understand(&self, environment: &Environment) -> Result<(), String> {
        settings::understand(environment)
    }

    fn prepare_environment(&self, environment: &Environment) {
        if Mode::from(environment) != Ok(Mode::Off) {
            registration::announce(environment);
        }
    }

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

    fn locks(&self) -> LocksAtFork {
        let spare = command_buffers::lock_of_all();
        [Some(spare), Some(INSTANCES.lock_of_all()), Some(ANY_DEVICES.lock_of_all()), None]
    }

    fn has_left_something(&self) -> bool {
        registration::has_made_something()
    }

    fn withdraw(&self) {
        registration::withdraw();
    }
}
