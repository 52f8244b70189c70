//! CUDA devices: every kernel with its node while CUPTI is attached, the time of
//! the whole split while it is not.
//!
//! * `api`, `settings`: what the rest of the agent asks, and what the user asked for;
//! * `calls`: the calls by which work is handed to a device;
//! * `process`: CUDA in this process, split by split;
//! * `timekeeper`, `windows`: CUPTI attached and detached, and when;
//! * `cupti`, `driver`: NVIDIA's libraries;
//! * `callbacks`: the functions that CUPTI calls;
//! * `listening`: what CUPTI tells while it is attached;
//! * `launches`: what the program was doing when it handed work to a device;
//! * `capture`: the order in which a CUDA graph's nodes were captured;
//! * `graph_nodes`: which node each node of a CUDA graph computes;
//! * `graph_length`: shorter CUDA graphs where every kernel is traced;
//! * `clock_bound`: how far their times can be off;
//! * `work`: CUPTI's records into the recording;
//! * `split_timer`: whole splits, by events;
//! * `ranks`: the order of the locks.

mod api;
mod callbacks;
mod calls;
mod capture;
mod clock_bound;
mod cupti;
mod driver;
mod graph_length;
mod graph_nodes;
mod launches;
mod listening;
mod process;
mod ranks;
mod settings;
mod split_timer;
mod timekeeper;
mod windows;
mod work;

pub(crate) use api::CudaApi;
use listening::note_waited;
#[cfg(test)]
pub(super) use ranks::NAMES as RANKS;
