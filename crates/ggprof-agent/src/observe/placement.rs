//! Why the processor computes a node although its scheduler has a device: where the node's tensors
//! are, and what each device says when it is asked, once per distinct node, whether it supports the
//! node and whether it would take it over.
//!
//! ggml's scheduler asks the same questions, with the same functions and on the same thread, about
//! every node of every graph that it divides. The answers of ggml's backends depend on the node's
//! fields and on properties of the device that were read when the device was opened. The functions
//! start no work and wait for none, so it does not matter that the device may be busy.
//! No graph is being captured meanwhile: devices capture inside their own `graph_compute`, and this
//! is that of the processor.
//!
//! Still the functions are foreign. So the very first question to a device is asked in a child
//! process (`ffi::rehearsal`); a device with which that goes wrong is never asked again.
//!
//! A device of another machine is not asked at all. ggml's RPC answers by itself today, but means to
//! pass the question on one day. A child shares the program's connections, so its question would be
//! sent in the middle of what the program sends; and one of the program's own would wait for the network.

use std::sync::atomic::Ordering;

use ggprof_spool::layout::{
    self, ANSWER_OFFLOAD_UNKNOWN, ANSWER_OFFLOADS, ANSWER_SUPPORTS, Answer, Covered, CoveredHow,
    CoveredWhy, Why,
};

use super::adopted::Adopted;
use super::backends;
use super::coverage::{self, Subject};
use super::devices;
use super::instance::Instance;
use super::lane_memory::LaneMemory;
use super::memory_kinds;
use super::node;
use super::this_thread::ThisThread;
use crate::digest::NumberSet;
use crate::fault::fault_point;
use crate::ffi::api::{Api, Pointer};
use crate::ffi::probe;
use crate::ffi::rehearsal;
use crate::ffi::tensor::{Tensor, TensorLayout};
use crate::recorder::lane::HeldLane;

/// States of `Adopted::asking`.
const UNTRIED: u8 = 0;
const ANSWERS: u8 = 1;
const REFUSED: u8 = 2;

/// What a lane knows of the scheduler that it computed for last.
#[derive(Debug, Default)]
pub(super) struct KnownPlacements {
    scheduler: usize,
    /// How many backends and schedulers had been made and freed until then.
    changes: u32,
    devices: Vec<&'static Adopted>,
    /// Shapes whose nodes are all written, by the backend that computed them, and the last of
    /// these.
    written: NumberSet<(u32, u32)>,
    last_written: (u32, u32),
}

impl KnownPlacements {
    /// The devices of the thread's scheduler.
    fn devices_of(&mut self, scheduler: usize) -> &[&'static Adopted] {
        let changes = backends::changes();
        if (self.scheduler, self.changes) != (scheduler, changes) {
            (self.scheduler, self.changes) = (scheduler, changes);
            self.devices = backends::devices_in(scheduler);
        }
        &self.devices
    }
}

/// The processor is about to compute these nodes for the thread's scheduler.
pub(super) fn note(
    this: &ThisThread,
    lane: &HeldLane<'_>,
    processor: &Adopted,
    (shape, nodes): (u32, &[*const u8]),
    memory: &mut LaneMemory,
) {
    let LaneMemory { placements, nodes: known, .. } = memory;
    let key = (shape, processor.id());
    if placements.devices_of(this.scheduler.get()).is_empty() || placements.last_written == key {
        return;
    }
    placements.last_written = key;
    if !placements.written.insert(key) {
        return;
    }
    write_new(lane, processor, known.nodes_of(shape), nodes, &placements.devices);
}

#[cold]
fn write_new(
    lane: &HeldLane<'_>,
    processor: &Adopted,
    numbers: &[u32],
    nodes: &[*const u8],
    devices: &[&'static Adopted],
) {
    let Some(instance) = processor.instance() else { return };
    let Some((tensor_layout, _)) = &instance.layouts else { return };
    let new: Vec<(u32, *const u8)> = {
        let mut interner = lane.recorder.interner();
        let pairs = numbers.iter().copied().zip(nodes.iter().copied());
        pairs.filter(|(number, _)| interner.is_new_placement(*number, processor.id())).collect()
    };
    for (number, node) in new {
        // SAFETY: a node of the graph that ggml is about to compute, of this instance.
        let tensor = unsafe { Tensor::new(node, tensor_layout) };
        if ggprof_ggml::computes(node::op_name(instance, tensor.op())) {
            fault_point!();
            let answers = devices.iter().filter_map(|device| ask(lane, instance, device, tensor));
            let answers: Vec<Answer> = answers.collect();
            write(lane, instance, (number, processor.id()), tensor, tensor_layout, &answers);
        }
    }
}

fn write(
    lane: &HeldLane<'_>,
    instance: &Instance,
    (node, backend): (u32, u32),
    tensor: Tensor<'_>,
    tensor_layout: &TensorLayout,
    answers: &[Answer],
) {
    let slots = tensor_layout.max_src.min(layout::MAX_SOURCES);
    let sources = (0..slots).filter_map(|slot| tensor.source(slot));
    let sources: Vec<u32> =
        sources.map(|source| memory_kinds::of_tensor(lane, instance, source).into()).collect();
    let record = layout::Placement {
        node,
        backend,
        memory: memory_kinds::of_tensor(lane, instance, tensor).into(),
        sources: sources.len() as u32,
        answers: answers.len() as u32,
        ..Default::default()
    };
    let sources = sources.iter().flat_map(|memory| memory.to_le_bytes());
    let tail: Vec<u8> = sources.chain(answers.iter().flat_map(Answer::encode)).collect();
    fault_point!();
    lane.define_long(&mut record.encode(), &tail);
}

/// What a device says of a node; `None` where it cannot be asked.
fn ask(
    lane: &HeldLane<'_>,
    instance: &Instance,
    device: &Adopted,
    node: Tensor<'_>,
) -> Option<Answer> {
    let asked = (device.pointer(), node.address() as Pointer);
    let state = device.asking().load(Ordering::Acquire);
    if state == UNTRIED && !try_out(lane, instance, device, asked) || state == REFUSED {
        return None;
    }
    // SAFETY: the scheduler that is computing holds the device's backend, and ggml the node; both
    // are of this instance (`try_out`), and a child has asked the same device before.
    let says = unsafe { says(&instance.api, asked) }?;
    Some(Answer { backend: device.id(), says })
}

/// Asks a device for the first time, in a child process; whether it can be asked.
#[cold]
fn try_out(
    lane: &HeldLane<'_>,
    instance: &Instance,
    device: &Adopted,
    asked: (Pointer, Pointer),
) -> bool {
    let is_same = device.instance().is_some_and(|other| other.id == instance.id);
    let api = &instance.api;
    let is_remote = || devices::is_remote(instance, devices::device_of(instance, asked.0));
    if is_same && is_remote() {
        // Coverage says nothing about this: the answers could not be had in any way.
        device.asking().store(REFUSED, Ordering::Release);
        return false;
    }
    let tried = if is_same && api.ggml_backend_supports_op.is_some() {
        // SAFETY: in a child, where whatever happens does no harm.
        let tried = rehearsal::rehearse(|_| unsafe { says(api, asked) });
        tried
            .map(|_| ())
            .map_err(|failure| Why { code: CoveredWhy::AskingFailed, detail: probe::why(failure) })
    } else {
        Err(Why::plain(CoveredWhy::NothingToAsk))
    };
    fault_point!();
    device.asking().store(if tried.is_ok() { ANSWERS } else { REFUSED }, Ordering::Release);
    let told = match tried {
        Ok(()) => (CoveredHow::Asked, Why::UNTOLD),
        Err(why) => (CoveredHow::Not, why),
    };
    coverage::say(lane, Subject::Backend(device.id()), Covered::Placement, told);
    tried.is_ok()
}

/// # Safety
/// A live backend and a live node of the ggml whose functions these are.
unsafe fn says(api: &Api, (backend, node): (Pointer, Pointer)) -> Option<u32> {
    // SAFETY: as ggml's header asks, by the caller's contract.
    unsafe {
        let supports = (api.ggml_backend_supports_op?)(backend, node);
        let offloads = api.ggml_backend_offload_op.map(|ask| ask(backend, node));
        let offloads = match offloads {
            Some(true) => ANSWER_OFFLOADS,
            Some(false) => 0,
            None => ANSWER_OFFLOAD_UNKNOWN,
        };
        Some(offloads | if supports { ANSWER_SUPPORTS } else { 0 })
    }
}
