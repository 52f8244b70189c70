//! The questions: pure functions from a trace to an answer, one file each. Only [`charge`] writes
//! its answer into the trace, before all others are asked.
//!
//! Nothing here prints, opens a file or chooses a word for people; a number that a report
//! shows is computed here.

#![forbid(unsafe_code)]

pub mod attention;
pub mod budget;
pub mod catalogue;
pub mod causality;
pub mod charging;
pub mod copies;
pub mod copy_consumers;
pub mod depth;
pub mod detailed;
pub mod device_kernels;
pub mod diff;
pub mod distinct_ops;
mod drafts;
pub mod energy;
pub mod estimates;
pub mod experts;
pub mod filter;
pub mod findings;
mod first_uses;
pub mod gaps;
pub mod grouping;
pub mod hosts;
pub mod inefficiency;
pub mod layers;
pub mod libllama;
pub mod live;
pub mod memory;
pub mod model_facts;
mod node_sums;
pub mod peaks;
mod percentiles;
pub mod phases;
pub mod placement;
pub mod processors;
pub mod remote;
pub mod requests;
pub mod roofs;
pub mod sampling;
pub mod seconds;
mod sequences;
mod shape_guess;
pub mod sharing;
mod split_kinds;
pub mod stacks;
pub mod statistics;
pub mod step;
mod steps;
pub mod top_kernels;
pub mod totals;
pub mod traffic;
pub mod wall;
mod warm_up;
pub mod work;

pub use attention::Attended;
pub use budget::{Budget, Divided, ModelPart, Spent, budgets, divided};
pub use causality::{Causality, causality};
pub use charging::charge;
pub use copy_consumers::copy_consumers;
pub use depth::{AttentionChange, ByDepth, depth};
pub use detailed::{DetailedRow, by_detail};
pub use device_kernels::{DeviceKernel, device_kernels};
pub use distinct_ops::{DistinctOp, distinct_ops};
pub use energy::energy;
pub use estimates::{Estimate, estimates_by, estimates_in_parts};
pub use filter::Filter;
pub use findings::{Explained, Finding, explained};
pub use gaps::{Gaps, gaps, missing_before};
pub use grouping::{
    BackendRow, FusionRow, LayerRow, ModuleRow, OpRow, PhaseRow, ShapeRow, by_backend, by_layer,
    by_op, by_phase, by_shape, fusion_of,
};
pub use inefficiency::{Inefficiency, inefficiency};
pub use layers::{Layer, Module, Place, Places, places};
pub use libllama::uses_libllama;
pub use memory::memory;
pub use model_facts::{ModelFacts, model_facts, most_threads};
pub use node_sums::{NodeSums, node_sums};
pub use peaks::Peaks;
pub use phases::{Phase, PhaseGroup, PhaseKind, Phases, phases};
pub use placement::{Placements, placement};
pub use requests::{Cause, Request, Wait, WaitShares, longest_waits};
pub use roofs::{Roofs, roofs};
pub use sampling::{Contexts, SampledOp, Sampling, sampling};
pub use seconds::{Second, seconds};
pub use sharing::{SharedDevice, sharing};
pub use top_kernels::top_kernels;
pub use totals::Totals;
pub use wall::{BackendTime, Wall, wall};
pub use work::{Work, work_of};
