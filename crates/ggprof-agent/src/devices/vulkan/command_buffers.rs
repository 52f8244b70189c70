//! The command buffers of a device. Vulkan demands that only one thread at a time records a command
//! buffer, so the data about it needs no lock. Finding it takes a lock, at its first command only.

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ash::vk::{self, Handle};

use super::ranks;
use super::recording::Recording;
use super::stamps::Stamps;
use crate::arch;
use crate::digest::NumberMap;
use crate::fault::fault_point;
use crate::lock::{HeldAtFork, Locked, Ranked};

/// Never freed, because a thread may still remember it. When the program has freed its own, this is
/// reused for a later one, of any device.
#[derive(Debug)]
pub(crate) struct CommandBuffer {
    /// 0 once the program has freed it.
    handle: AtomicU64,
    pool: AtomicU64,
    family: AtomicU32,
    inner: UnsafeCell<CommandBufferState>,
}

/// What is being recorded.
#[derive(Debug, Default)]
pub(crate) struct CommandBufferState {
    pub(crate) recording: Recording,
    pub(crate) stamps: Stamps,
    /// Bound last.
    pub(crate) pipeline: vk::Pipeline,
    /// Its work is noted: recording is on, and it is submitted only once.
    pub(crate) noted: bool,
    /// Timestamps can be written into it.
    pub(crate) timed: bool,
    /// Submitted, and not read back yet.
    pub(crate) in_flight: bool,
}

// SAFETY: `inner` is reached only from calls about this command buffer, which the program
// must not make on two threads at once.
unsafe impl Sync for CommandBuffer {}

impl CommandBuffer {
    fn none() -> &'static CommandBuffer {
        Box::leak(Box::new(CommandBuffer {
            handle: AtomicU64::new(0),
            pool: AtomicU64::new(0),
            family: AtomicU32::new(0),
            inner: UnsafeCell::default(),
        }))
    }

    /// The family of the queues it can be submitted to.
    pub(crate) fn family(&self) -> u32 {
        self.family.load(Ordering::Relaxed)
    }

    /// # Safety
    /// Called from a Vulkan command about this buffer, or about its pool: the program
    /// keeps those apart. The reference is not kept.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn inner(&self) -> &mut CommandBufferState {
        // SAFETY: the caller's contract.
        unsafe { &mut *self.inner.get() }
    }

    pub(crate) fn is(&self, handle: vk::CommandBuffer) -> bool {
        self.handle.load(Ordering::Relaxed) == handle.as_raw()
    }
}

/// The command buffer used last on a thread.
struct LastUsed(Cell<Option<&'static CommandBuffer>>);

arch::thread_memory!("ggprof_command_buffer", fn last_used() -> LastUsed);

#[derive(Debug, Default)]
pub(crate) struct CommandBuffers {
    known: Ranked<{ ranks::COMMAND_BUFFERS }, KnownCommandBuffers>,
}

#[derive(Debug, Default)]
struct KnownCommandBuffers {
    /// The queue family of each pool.
    families: NumberMap<u64, u32>,
    buffers: NumberMap<u64, &'static CommandBuffer>,
}

/// Those that are not in use.
static SPARE: Ranked<{ ranks::SPARE_BUFFERS }, Vec<&'static CommandBuffer>> =
    Ranked::new(Vec::new());

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
    &SPARE
}

impl CommandBuffers {
    #[inline]
    pub(crate) fn find(&self, handle: vk::CommandBuffer) -> Option<&'static CommandBuffer> {
        // SAFETY: this thread's own memory, zeroed when the thread began, which is a valid value;
        // the cell keeps it to this thread.
        let LastUsed(last_used) = unsafe { &*last_used() };
        if let Some(last) = last_used.get().filter(|last| last.is(handle)) {
            return Some(last);
        }
        let found = self.known().buffers.get(&handle.as_raw()).copied();
        last_used.set(found);
        found
    }

    pub(crate) fn note_pool(&self, pool: vk::CommandPool, family: u32) {
        self.known().families.insert(pool.as_raw(), family);
    }

    pub(crate) fn note_allocated(&self, pool: vk::CommandPool, handles: &[vk::CommandBuffer]) {
        let mut known = self.known();
        let Some(&family) = known.families.get(&pool.as_raw()) else { return };
        for handle in handles {
            fault_point!();
            let buffer = SPARE.lock().pop().unwrap_or_else(CommandBuffer::none);
            buffer.pool.store(pool.as_raw(), Ordering::Relaxed);
            buffer.family.store(family, Ordering::Relaxed);
            buffer.handle.store(handle.as_raw(), Ordering::Relaxed);
            known.buffers.insert(handle.as_raw(), buffer);
        }
    }

    /// All that were allocated from a pool.
    pub(crate) fn of_pool(&self, pool: vk::CommandPool) -> Vec<&'static CommandBuffer> {
        let of_pool =
            |buffer: &&CommandBuffer| buffer.pool.load(Ordering::Relaxed) == pool.as_raw();
        self.known().buffers.values().copied().filter(of_pool).collect()
    }

    /// The program frees it; its handle may mean another from now on.
    pub(crate) fn forget(&self, buffer: &'static CommandBuffer) {
        let handle = buffer.handle.swap(0, Ordering::Relaxed);
        if self.known().buffers.remove(&handle).is_some() {
            SPARE.lock().push(buffer);
        }
    }

    pub(crate) fn forget_pool(&self, pool: vk::CommandPool) {
        self.known().families.remove(&pool.as_raw());
    }

    pub(crate) fn all(&self) -> Vec<&'static CommandBuffer> {
        self.known().buffers.values().copied().collect()
    }

    fn known(&self) -> Locked<'_, { ranks::COMMAND_BUFFERS }, KnownCommandBuffers> {
        self.known.lock()
    }
}
