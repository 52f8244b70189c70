//! Timestamps in a command buffer: query pools that belong to it, and the commands that
//! write into them.

use ash::vk;

use super::device::Device;
use super::recording::{Between, When};

/// Queries of one pool. ggml submits at most a hundred nodes at once, some of which
/// are several dispatches.
const POOL_QUERIES: u32 = 256;

/// The query pools of one command buffer; it keeps them as long as it lives.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    pub(crate) pools: Vec<vk::QueryPool>,
    /// Written since the command buffer was begun.
    pub(crate) written: u32,
}

impl Stamps {
    /// Makes the queries ready for the next use. They are not in use: the command
    /// buffer that wrote them is about to be recorded anew.
    pub(crate) fn reset(&mut self, device: &Device) {
        let Some(reset) = device.next.reset_query_pool else { return };
        for (pool, queries) in self.used() {
            // SAFETY: our own pool on its own device, whose feature for this was switched
            // on; see above for its use.
            unsafe { reset(device.handle, pool, 0, queries) };
        }
        self.written = 0;
    }

    /// Pools that were written to, and how many of their queries.
    pub(crate) fn used(&self) -> impl Iterator<Item = (vk::QueryPool, u32)> {
        used(&self.pools, self.written)
    }

    fn room_for_one(&mut self, device: &Device) -> Option<(vk::QueryPool, u32)> {
        let place = (self.written / POOL_QUERIES) as usize;
        if place == self.pools.len() {
            self.pools.push(device.make_query_pool(POOL_QUERIES)?);
        }
        Some((*self.pools.get(place)?, self.written % POOL_QUERIES))
    }
}

pub(crate) fn used(
    pools: &[vk::QueryPool],
    written: u32,
) -> impl Iterator<Item = (vk::QueryPool, u32)> {
    let firsts = (0..written).step_by(POOL_QUERIES as usize);
    pools.iter().copied().zip(firsts.map(move |first| (written - first).min(POOL_QUERIES)))
}

/// The place between two commands of a command buffer.
#[derive(Debug)]
pub(crate) struct Here<'a> {
    pub(crate) device: &'a Device,
    pub(crate) buffer: vk::CommandBuffer,
    pub(crate) stamps: &'a mut Stamps,
    /// Otherwise nothing is put here.
    pub(crate) timed: bool,
}

impl Between for Here<'_> {
    fn stamp(&mut self, when: When) -> Option<u32> {
        if !self.timed {
            return None;
        }
        let (pool, query) = self.stamps.room_for_one(self.device)?;
        let stage = match when {
            When::Reached => vk::PipelineStageFlags::TOP_OF_PIPE,
            When::Done => vk::PipelineStageFlags::BOTTOM_OF_PIPE,
        };
        // SAFETY: the program records into this buffer on this thread now; the query is
        // ours and was reset when its pool was made or the buffer begun.
        unsafe { (self.device.next.cmd_write_timestamp)(self.buffer, stage, pool, query) };
        let number = self.stamps.written;
        self.stamps.written += 1;
        Some(number)
    }

    fn barrier(&mut self) {
        if !self.timed {
            return;
        }
        let all = vk::PipelineStageFlags::ALL_COMMANDS;
        let (flags, none) = (vk::DependencyFlags::empty(), std::ptr::null());
        let next = self.device.next.cmd_pipeline_barrier;
        // SAFETY: as above; an order of execution only, so there is nothing to point to.
        unsafe {
            next(self.buffer, all, all, flags, 0, none, 0, std::ptr::null(), 0, std::ptr::null());
        }
    }
}
