//! Compute pipelines: the names that ggml gives them, and how long they took to compile. ggml
//! compiles a pipeline when a node first needs it, while it records a graph, and names it right
//! afterwards.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use ash::vk::{self, Handle};
use ggprof_spool::layout::{HostTask, NONE, TASK_PIPELINE_COMPILE};

use super::ranks;
use crate::clock;
use crate::digest::NumberMap;
use crate::fault::fault_point;
use crate::lock::Ranked;
use crate::observe::fail_open;
use crate::observe::this_thread::ThisThread;
use crate::recorder::current;
use crate::recorder::lane::HeldLane;

/// Command buffers that are under way refer to it as well.
#[derive(Debug)]
pub(crate) struct Pipeline {
    name: OnceLock<Vec<u8>>,
    /// The name's number in the recording, with the epoch that it holds for.
    text: AtomicU64,
    used: AtomicBool,
    /// How long it took to compile; `None` once that is written.
    compiled: Ranked<{ ranks::COMPILED }, Option<HostTask>>,
}

#[derive(Debug, Default)]
pub(crate) struct Pipelines {
    known: Ranked<{ ranks::PIPELINES }, NumberMap<u64, Arc<Pipeline>>>,
}

impl Pipelines {
    pub(crate) fn find(&self, pipeline: vk::Pipeline) -> Option<Arc<Pipeline>> {
        let known = self.known.lock();
        known.get(&pipeline.as_raw()).cloned()
    }

    /// Pipelines that took from `start` until now to compile, all in one call.
    pub(crate) fn note_new(&self, this: &ThisThread, pipelines: &[vk::Pipeline], start: u64) {
        // SAFETY: set for the length of the graph by the split that owns it, on this
        // thread only.
        let split = unsafe { this.visits.get().as_ref() }.map_or(NONE, |visits| visits.split);
        let task = HostTask {
            what: TASK_PIPELINE_COMPILE,
            split,
            os_thread: this.os_thread(),
            start,
            end: clock::ticks(),
            ..HostTask::default()
        };
        fault_point!();
        let mut known = self.known.lock();
        for (number, pipeline) in pipelines.iter().filter(|one| !one.is_null()).enumerate() {
            // The time of a call counts once.
            let task = (number == 0).then_some(task);
            let new = Pipeline {
                name: OnceLock::new(),
                text: AtomicU64::new(0),
                used: AtomicBool::new(false),
                compiled: Ranked::new(task),
            };
            known.insert(pipeline.as_raw(), Arc::new(new));
        }
    }

    pub(crate) fn note_name(&self, pipeline: vk::Pipeline, name: &[u8]) {
        let Some(pipeline) = self.find(pipeline) else { return };
        let _ = pipeline.name.set(name.to_vec());
        fault_point!();
        fail_open::guard((), |this| {
            let Some(recorder) = current::recording() else { return };
            if let Some(lane) = this.lane(recorder) {
                pipeline.write_compiled(&lane);
            }
        });
    }

    pub(crate) fn forget(&self, pipeline: vk::Pipeline) {
        let mut known = self.known.lock();
        known.remove(&pipeline.as_raw());
    }
}

impl Pipeline {
    /// True at the first call.
    pub(crate) fn is_first_use(&self) -> bool {
        !self.used.load(Ordering::Relaxed) && !self.used.swap(true, Ordering::Relaxed)
    }

    /// The name's number; 0 where ggml gives none.
    pub(crate) fn text(&self, lane: &HeldLane<'_>) -> u32 {
        let Some(name) = self.name.get() else { return NONE };
        let epoch = u64::from(lane.recorder.epoch()) << 32;
        let known = self.text.load(Ordering::Relaxed);
        if known as u32 != NONE && known >> 32 == epoch >> 32 {
            return known as u32;
        }
        let text = lane.recorder.interner().text(lane, name);
        self.text.store(epoch | u64::from(text), Ordering::Relaxed);
        text
    }

    /// Writes how long it took to compile, once: when its name is known, or when it is
    /// used without one.
    pub(crate) fn write_compiled(&self, lane: &HeldLane<'_>) {
        if !lane.writes() {
            return;
        }
        let compiled = self.compiled.lock().take();
        if let Some(task) = compiled {
            fault_point!();
            lane.put(&HostTask { name: self.text(lane), ..task }.encode());
        }
    }
}
