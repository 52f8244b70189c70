//! Work that was submitted and whose times are not there yet. The times are read when ggml has seen
//! work end, and at the latest when it records the command buffer again: Vulkan forbids that while
//! the buffer is in use, so by then the times are there. Nothing waits.

use std::sync::atomic::{AtomicUsize, Ordering};

use ash::vk::{self, Handle};

use super::command_buffers::{CommandBuffer, CommandBufferState};
use super::device::Device;
use super::ranks;
use super::recording::CommandWork;
use super::stamps;
use crate::fault::fault_point;
use crate::lock::{Locked, Ranked};

/// The works of one command buffer that was submitted.
#[derive(Debug)]
pub(crate) struct Batch {
    buffer: &'static CommandBuffer,
    pub(crate) works: Vec<CommandWork>,
    pools: Vec<vk::QueryPool>,
    stamps: u32,
    /// The number of the queue, and that of the first of its groups in this command buffer.
    pub(crate) stream: u32,
    pub(crate) first_group: u32,
    pub(crate) groups: u32,
    /// The first group began in an earlier command buffer; the last goes on in a later.
    pub(crate) joins: bool,
    pub(crate) goes_on: bool,
    pub(crate) submitted_ns: u64,
}

/// A batch and the values of its timestamps; none where the device did not give them.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) batch: Batch,
    pub(crate) family: u32,
    pub(crate) values: Vec<u64>,
}

/// A queue as its submissions show it.
#[derive(Debug)]
struct Queue {
    handle: u64,
    group: u32,
    /// Something was submitted that nothing synchronised with yet.
    open: bool,
}

#[derive(Debug, Default)]
struct Submitted {
    queues: Vec<Queue>,
    batches: Vec<Batch>,
}

#[derive(Debug, Default)]
pub(crate) struct InFlight {
    state: Ranked<{ ranks::IN_FLIGHT }, Submitted>,
    count: AtomicUsize,
}

impl InFlight {
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// A command buffer is about to be submitted.
    pub(crate) fn push(
        &self,
        queue: vk::Queue,
        buffer: &'static CommandBuffer,
        inner: &mut CommandBufferState,
        submitted_ns: u64,
    ) {
        let works = std::mem::take(&mut inner.recording.works);
        let groups = inner.recording.groups;
        fault_point!();
        let mut state = self.state();
        let number = state.number(queue);
        let stream = number as u32 + 1;
        if !state.batches.iter().any(|batch| batch.stream == stream) {
            // The host has seen the end of everything before.
            let queue = &mut state.queues[number];
            queue.group = queue.group.wrapping_add(u32::from(queue.open));
            queue.open = false;
        }
        let last_is_open = works.last().is_some_and(|work| work.group == groups);
        let joins = state.queues[number].open && works.first().is_some_and(|work| work.group == 0);
        if joins && let Some(before) = state.batches.iter_mut().rfind(|b| b.stream == stream) {
            before.goes_on = true;
        }
        fault_point!();
        let queue = &mut state.queues[number];
        let first_group = queue.group;
        queue.group = queue.group.wrapping_add(groups);
        queue.open = last_is_open || (groups == 0 && queue.open);
        if works.is_empty() {
            return;
        }
        inner.in_flight = true;
        fault_point!();
        let (pools, stamps) = (inner.stamps.pools.clone(), inner.stamps.written);
        state.batches.push(Batch {
            buffer,
            works,
            pools,
            stamps,
            stream,
            first_group,
            groups,
            joins,
            goes_on: false,
            submitted_ns,
        });
        self.count.store(state.batches.len(), Ordering::Relaxed);
    }

    /// Everything whose times are there.
    pub(crate) fn take_finished(&self, device: &Device) -> Vec<Finished> {
        let mut finished = Vec::new();
        // A queue's timestamps come in order, so behind a missing one there are no others.
        let mut blocked = 0_u64;
        self.take(|batch| {
            let stream = 1_u64.wrapping_shl(batch.stream);
            if blocked & stream != 0 {
                return false;
            }
            let values = read(device, batch);
            blocked |= if values.is_none() { stream } else { 0 };
            values.map(|values| finished.push(values)).is_some()
        })
        .into_iter()
        .zip(finished)
        .map(|(batch, values)| Finished { family: batch.buffer.family(), batch, values })
        .collect()
    }

    /// The work of a command buffer that is not in use any more. A lost device gives no times.
    pub(crate) fn take_of(&self, device: &Device, buffer: &CommandBuffer) -> Vec<Finished> {
        self.take_all(device, |batch| std::ptr::eq(batch.buffer, buffer))
    }

    pub(crate) fn take_all(
        &self,
        device: &Device,
        chosen: impl Fn(&Batch) -> bool,
    ) -> Vec<Finished> {
        let finish = |batch: Batch| {
            let values = read(device, &batch).unwrap_or_default();
            Finished { family: batch.buffer.family(), batch, values }
        };
        self.take(chosen).into_iter().map(finish).collect()
    }

    fn take(&self, chosen: impl FnMut(&Batch) -> bool) -> Vec<Batch> {
        let mut chosen = chosen;
        let mut state = self.state();
        let taken: Vec<Batch> = state.batches.extract_if(.., |batch| chosen(batch)).collect();
        self.count.store(state.batches.len(), Ordering::Relaxed);
        taken
    }

    fn state(&self) -> Locked<'_, { ranks::IN_FLIGHT }, Submitted> {
        self.state.lock()
    }
}

impl Submitted {
    fn number(&mut self, queue: vk::Queue) -> usize {
        let handle = queue.as_raw();
        self.queues.iter().position(|known| known.handle == handle).unwrap_or_else(|| {
            self.queues.push(Queue { handle, group: 1, open: false });
            self.queues.len() - 1
        })
    }
}

/// The values of a batch's timestamps; `None` while one is missing.
fn read(device: &Device, batch: &Batch) -> Option<Vec<u64>> {
    if device.is_lost() {
        return Some(Vec::new());
    }
    let mut values = vec![0_u64; batch.stamps as usize];
    let mut rest = values.as_mut_slice();
    for (pool, queries) in stamps::used(&batch.pools, batch.stamps) {
        let (part, behind) = rest.split_at_mut_checked(queries as usize)?;
        // SAFETY: our own pool, and room for as many values; without a flag that waits.
        let result = unsafe {
            (device.next.get_query_pool_results)(
                device.handle,
                pool,
                0,
                queries,
                size_of_val(part),
                part.as_mut_ptr().cast(),
                size_of::<u64>() as vk::DeviceSize,
                vk::QueryResultFlags::TYPE_64,
            )
        };
        match result {
            vk::Result::SUCCESS => rest = behind,
            vk::Result::NOT_READY => return None,
            other => {
                device.note(other);
                return Some(Vec::new());
            }
        }
    }
    Some(values)
}
