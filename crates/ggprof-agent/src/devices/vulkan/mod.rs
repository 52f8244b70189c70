//! What a Vulkan device did for ggml, by the device's own clock. Timestamps are
//! written into ggml's command buffers, between its commands, and read back when
//! ggml itself has seen the work end: nothing here ever waits for the device.
//!
//! * `api`, `settings`: what the rest of the agent asks, and what the user asked for;
//! * `layer`: the functions that the loader and ggml call in place of the driver's;
//! * `ffi`: Vulkan, as the loader shows it to a layer;
//! * `registration`: how the loader comes to know the layer;
//! * `registry`, `keyed`, `device`: which objects of the loader are which of ours;
//! * `device_creation`: what a device must have switched on;
//! * `label_switch`: names without the labels that come with them;
//! * `samples`: which graphs have their parts timed;
//! * `place`: which node a command is recorded for, or what else it is;
//! * `recording`, `stamps`: a command buffer's works and the timestamps around them;
//! * `command_buffers`: the command buffers there are;
//! * `in_flight`: works that were submitted, until their times are there;
//! * `clock`: the device's clock and the host's;
//! * `pipelines`: names of kernels, and how long they took to compile;
//! * `write`: all of it into the recording;
//! * `ranks`: the order of the locks;
//! * `without_agent`: programs that only the Vulkan loader lets us into.

mod api;
pub(crate) mod clock;
pub(crate) mod command_buffers;
pub(crate) mod device;
pub(crate) mod device_creation;
pub(crate) mod ffi;
pub(crate) mod in_flight;
pub(crate) mod keyed;
pub(crate) mod label_switch;
mod layer;
pub(crate) mod pipelines;
pub(crate) mod place;
mod ranks;
pub(crate) mod recording;
pub(crate) mod registration;
pub(crate) mod registry;
pub(crate) mod samples;
pub(crate) mod settings;
pub(crate) mod stamps;
pub(crate) mod without_agent;
pub(crate) mod write;

pub(crate) use api::VulkanApi;
#[cfg(test)]
pub(super) use ranks::NAMES as RANKS;
