//! Starting a program with the agent inside, and staying out of its way.

mod agent;
mod ahead;
mod attach;
mod child;
mod completed;
mod control;
// Asks the kernel.
#[allow(unsafe_code)]
mod day_clock;
mod holder;
mod listed;
mod look;
mod machine;
mod observer;
pub(crate) mod outliving;
mod preload;
mod program;
mod recorded;
mod sensors;
mod siblings;
mod size_limit;
mod sockets;
mod spools;
mod trial;
mod vulkan_layer;
mod watched;

pub(crate) use agent::{Agent, find as find_agent, find_for as find_agent_for};
pub(crate) use ahead::Ahead;
pub(crate) use attach::{Attached, Running, attach};
pub(crate) use child::{Ended, NotStarted, run};
pub(crate) use completed::Completed;
pub(crate) use control::ControlSocket;
pub(crate) use listed::{Listed, list_all};
pub(crate) use look::{Look, Process, look};
pub(crate) use observer::{Observer, Orders};
pub(crate) use preload::{SANITIZER, sanitizer_options, with_agent as preload_with_agent};
pub(crate) use program::{Program, examine, hides_ggml, is_of_ggml};
pub(crate) use recorded::RecordedProcess;
use recorded::Standing;
#[cfg(test)]
pub(crate) use recorded::send;
pub(crate) use sensors::{Energy, Processes, Samples, Sensors, readable as readable_sensors};
pub(crate) use siblings::Heir;
pub(crate) use size_limit::for_agent as size_for_agent;
pub(crate) use sockets::Launcher;
pub(crate) use spools::{Spools, process_of};
pub(crate) use trial::{
    Interrupted, Interruption, Trial, numbered as numbered_recordings, remove as remove_recordings,
};
pub(crate) use vulkan_layer::announce as announce_vulkan_layer;
pub(crate) use watched::Watched;

/// Now, by the clock of recordings.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
