//! What CUPTI reports while it is attached: calls and graph nodes at once, on the program's
//! threads, and records later, on CUPTI's own thread.

use ggprof_spool::layout::NO_NODE;

use super::capture::CapturedGraph;
use super::cupti::session::Event;
use super::cupti::{Cupti, records};
use super::launches::{self, Launch};
use super::process::{now_ns, work};
use super::work::WorkWriter;
use crate::fault::fault_point;
use crate::observe::this_thread::ThisThread;
use crate::observe::visits::Visits;
use crate::recorder::Recorder;
use crate::recorder::current;

/// CUPTI tells of a call or a graph's node on this thread.
pub(crate) fn note_event(this: &ThisThread, event: Event) {
    // SAFETY: set for the length of the graph by the split that owns it, on this
    // thread only.
    let visits = unsafe { this.visits.get().as_mut() };
    match event {
        Event::Work { correlation, whole_graph } => {
            let mut launch =
                Launch { cause: this.copy_start.get(), called_ns: now_ns(), ..Launch::UNKNOWN };
            if let Some(visits) = visits {
                (launch.split, launch.backend) = (visits.split, visits.backend);
                if whole_graph {
                    let graph = visits.follower::<CapturedGraph>();
                    launch.executable = graph.map_or(0, |graph| graph.executable as u64);
                } else {
                    visits.note_work();
                    launch.position = visits.position().unwrap_or(NO_NODE);
                }
            }
            launches::keep(correlation, launch);
        }
        Event::NodeMade { node } => {
            let position = visits.and_then(|visits| {
                visits.note_work();
                visits.position()
            });
            if let Some(work) = work().as_mut() {
                match position {
                    Some(position) => work.nodes.learn(node, position),
                    None => work.nodes.forget(node),
                }
            }
        }
        Event::NodeCopied { node, original } => {
            if let Some(graph) = visits.and_then(Visits::follower::<CapturedGraph>) {
                graph.copied = true;
            }
            if let Some(work) = work().as_mut() {
                work.nodes.copy(node, original);
            }
        }
    }
}

/// The host has waited for all work of the devices.
pub(crate) fn note_waited() {
    if let Some(work) = work().as_mut() {
        work.bound.waited(now_ns());
    }
}

/// CUPTI hands records over.
///
/// # Safety
/// The buffer holds `valid` bytes of records of this CUPTI.
pub(crate) unsafe fn take_records(cupti: &Cupti, buffer: *mut u8, valid: usize, dropped: u64) {
    let Some(lane) = current::recording().and_then(Recorder::lane_for_owed) else { return };
    fault_point!();
    WorkWriter::note_dropped(&lane, dropped);
    if let Some(work) = work().as_mut() {
        // SAFETY: the caller's contract.
        unsafe { records::for_each(cupti, buffer, valid, |activity| work.take(&lane, &activity)) };
    }
}
