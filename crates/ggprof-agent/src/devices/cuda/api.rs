//! CUDA behind the interface that the rest of the agent uses.

use ggprof_spool::layout::CoveredWhy;

use super::settings::{self, CudaLevel, VARIABLES};
use super::{calls, graph_length, process};
use crate::config::Environment;
use crate::lock::HeldAtFork;
use crate::observe::adopted::Adopted;
use crate::observe::device_api::DeviceApi;
use crate::observe::this_thread::ThisThread;
use crate::patch::loaded_object::LoadedObject;
use crate::recorder::lane::HeldLane;

/// The name by which `observe::backends` knows the backends of CUDA.
pub(super) const NAME: &str = "CUDA";

#[derive(Debug)]
pub(crate) struct CudaApi;

impl DeviceApi for CudaApi {
    fn name(&self) -> &'static str {
        NAME
    }

    #[unsafe(link_section = ".text.asleep")]
    fn variables(&self) -> &'static [&'static str] {
        VARIABLES
    }

    fn understand(&self, environment: &Environment) -> Result<(), String> {
        settings::understand(environment)
    }

    #[unsafe(link_section = ".text.asleep")]
    fn prepare_environment(&self, environment: &Environment) {
        if CudaLevel::from(environment) == Ok(CudaLevel::Full) {
            graph_length::shorten();
        }
    }

    fn hook_calls(&self, library: &LoadedObject) -> bool {
        calls::hook(library)
    }

    fn why_unseen(&self, library: &LoadedObject) -> Option<CoveredWhy> {
        calls::is_one_too_many(library).then_some(CoveredWhy::TooManyLibraries)
    }

    fn covers_itself(&self) -> bool {
        process::is_wanted()
    }

    fn begin_split(
        &self,
        this: &ThisThread,
        lane: &HeldLane<'static>,
        adopted: &Adopted,
        split: u32,
    ) -> bool {
        process::begin_split(this, lane, adopted, split)
    }

    fn end_split(&self, lane: &HeldLane<'_>, backend: u32, split: u32, stream: usize) {
        process::end_split(lane, backend, split, stream);
    }

    fn leave_split(&self) {
        process::leave_split();
    }

    fn while_nobody_waits(&self, work: &mut dyn FnMut()) {
        process::while_nobody_waits(work);
    }

    fn before_backend_free(&self, lane: &HeldLane<'_>, freed: &Adopted) {
        process::before_backend_free(lane, freed);
    }

    fn note_unrecorded_split(&self) {
        process::detach_unless_active();
    }

    fn note_waited(&self) {
        super::note_waited();
    }

    fn deliver(&self) {
        process::deliver_records();
    }

    fn is_in_use(&self) -> bool {
        process::is_in_use()
    }

    fn fork_lock(&self, number: usize) -> Option<&'static dyn HeldAtFork> {
        (number == 0).then(calls::fork_lock)
    }
}
