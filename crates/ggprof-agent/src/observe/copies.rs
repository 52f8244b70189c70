//! Tensors moved between backends. ggml itself gives the bytes; whether each side's buffer is host
//! memory gives the direction; the device of the buffer gives the backend. A call that may return
//! before the copy is done is marked so: its time is that of the host's call, not of the copy.

use ggprof_ggml::{copied_tensor, is_input};
use ggprof_spool::layout::{self, NONE};

use super::backends;
use super::buffers;
use super::instance::Instance;
use super::known_copies::{Ends, Key};
use super::lane_memory::LaneMemory;
use super::memory_kinds;
use super::this_thread::ThisThread;
use crate::clock;
use crate::fault::fault_point;
use crate::ffi::api::Pointer;
use crate::ffi::tensor::Tensor;
use crate::recorder::current;
use crate::recorder::lane::HeldLane;

/// What a call of ggml copies, for the device work that is recorded meanwhile.
pub(crate) const READING: u8 = 1;
pub(crate) const WRITING: u8 = 2;
pub(crate) const COPYING: u8 = 3;

/// While this value lives, this thread is inside a copying call of ggml. A nested call sets the
/// direction; the cause stays that of the outer call.
#[derive(Debug)]
pub(crate) struct Underway {
    outer: u8,
    outer_start: u64,
}

impl Underway {
    /// `start` is that of the event which the copy becomes, 0 if it becomes none.
    pub(crate) fn new(what: u8, start: u64) -> Underway {
        ThisThread::with(|this| {
            let outer_start = this.copy_start.get();
            if outer_start == 0 {
                this.copy_start.set(start);
            }
            Underway { outer: this.copying.replace(what), outer_start }
        })
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        ThisThread::with(|this| {
            this.copying.set(self.outer);
            this.copy_start.set(self.outer_start);
        });
    }
}

/// A copy that the real function has made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied {
    pub(crate) start: u64,
    /// Null where the source is plain memory.
    pub(crate) source: Pointer,
    /// Where that memory is.
    pub(crate) data: Pointer,
    pub(crate) target: Pointer,
    /// Backends the call named, null where it named none.
    pub(crate) source_backend: Pointer,
    pub(crate) target_backend: Pointer,
    /// Part of the target: offset and bytes.
    pub(crate) part: Option<(usize, usize)>,
    pub(crate) may_be_pending: bool,
}

/// Writes a copy down. `of` finds the copy of ggml that made it.
pub(crate) fn note(
    this: &ThisThread,
    of: impl FnOnce(&HeldLane<'_>) -> Option<&'static Instance>,
    copied: Copied,
) -> Option<()> {
    let end = clock::ticks();
    this.note_copy(copied.source as usize, copied.target as usize);
    let recorder = current::start_recording()?;
    let lane = this.lane(recorder).filter(HeldLane::writes)?;
    fault_point!();
    let instance = of(&lane)?;
    let (layout, _) = instance.layouts.as_ref()?;
    let side = |tensor: Pointer, backend: Pointer| {
        // SAFETY: the program handed the tensor to the copy that has just
        // returned, and holds it still.
        let tensor =
            (!tensor.is_null()).then(|| unsafe { Tensor::new(tensor.cast_const().cast(), layout) });
        Side::of(instance, tensor, backend)
    };
    let sides =
        [side(copied.source, copied.source_backend), side(copied.target, copied.target_backend)];
    let shape = if copied.part.is_some() { 0 } else { sides[1].shape_sum() };
    let key = Key {
        names: sides.map(|side| side.name_sum()),
        shape,
        buffer_types: sides.map(|side| side.buffer_type),
        backends: sides.map(|side| side.backend as usize),
        scheduler: this.scheduler.get(),
        changes: backends::changes(),
    };
    let memory = lane.take_memory::<LaneMemory>();
    let known = memory.copies.find(&key);
    lane.return_memory(memory);
    let ends = known.unwrap_or_else(|| find_out(&lane, instance, key, sides, copied));
    let mut record = ends.event();
    if let Some((offset, bytes)) = copied.part {
        record.flags |= layout::COPY_PARTIAL;
        (record.offset, record.bytes) = (offset as u64, bytes as u64);
    }
    record.flags |= if copied.may_be_pending { layout::COPY_ASYNC } else { 0 };
    record.run = this.run.get();
    (record.start, record.end) = (copied.start, end);
    lane.put_long(&mut record.encode(), &[]);
    Some(())
}

/// Finds the two backends of a copy that is not known, and remembers them for the next time.
#[cold]
fn find_out(
    lane: &HeldLane<'_>,
    instance: &Instance,
    key: Key,
    sides: [Side<'_>; 2],
    copied: Copied,
) -> Ends {
    let mut memories = sides.map(|side| memory_kinds::of_buffer(lane, instance, side.buffer));
    // The scheduler hands over a part of a weight as plain memory.
    if sides[0].buffer_type == MEMORY && sides[1].is_copy_of_scheduler() {
        memories[0] = buffers::memory_at(lane, copied.data as usize);
    }
    fault_point!();
    let found = sides.map(|side| side.found(instance, key.scheduler));
    let mut interner = lane.recorder.interner();
    fault_point!();
    let ends = Ends {
        flags: direction(found[0].0, found[1].0) | sides[0].input_flag(),
        memories,
        names: sides.map(|side| interner.text(lane, side.name())),
        backends: found.map(|(_, backend)| backend),
        bytes: if key.shape == 0 { 0 } else { sides[1].bytes(instance) },
    };
    let mut memory = lane.take_memory::<LaneMemory>();
    memory.copies.remember(key, ends);
    lane.return_memory(memory);
    ends
}

/// One side of a copy, as its call names it.
#[derive(Clone, Copy)]
struct Side<'t> {
    /// `None` for plain memory.
    tensor: Option<Tensor<'t>>,
    buffer: Pointer,
    /// The buffer's, or one of the marks below.
    buffer_type: usize,
    backend: Pointer,
}

/// A tensor without a buffer.
const NO_BUFFER: usize = 0;
/// No tensor, but plain memory.
const MEMORY: usize = usize::MAX;

impl<'t> Side<'t> {
    #[inline(always)]
    fn of(instance: &Instance, tensor: Option<Tensor<'t>>, backend: Pointer) -> Side<'t> {
        let Some(holder) = tensor.map(|tensor| tensor.view_source().unwrap_or(tensor)) else {
            return Side { tensor, buffer: std::ptr::null_mut(), buffer_type: MEMORY, backend };
        };
        let buffer = holder.buffer() as Pointer;
        let get_type = instance.api.ggml_backend_buffer_get_type.filter(|_| !buffer.is_null());
        // SAFETY: the buffer of a live tensor of this instance.
        let buffer_type =
            get_type.map_or(NO_BUFFER, |get_type| unsafe { get_type(buffer) } as usize);
        Side { tensor, buffer, buffer_type, backend }
    }

    #[inline(always)]
    fn name_sum(self) -> u64 {
        self.tensor.map_or(0, Tensor::name_sum)
    }

    /// A key for the buffer's type; never 0.
    #[inline(always)]
    fn shape_sum(self) -> u64 {
        self.tensor.map_or(0, Tensor::shape_sum) | 1 << 63
    }

    fn name(self) -> &'t [u8] {
        self.tensor.map_or(b"", Tensor::name)
    }

    /// The scheduler names its copies after what they are copies of.
    fn is_copy_of_scheduler(self) -> bool {
        std::str::from_utf8(self.name()).is_ok_and(|name| copied_tensor(name).is_some())
    }

    fn input_flag(self) -> u8 {
        let is_input = self.tensor.is_some_and(|tensor| is_input(tensor.flags()));
        if is_input { layout::COPY_INPUT } else { 0 }
    }

    fn bytes(self, instance: &Instance) -> u64 {
        let (Some(tensor), Some(count)) = (self.tensor, instance.api.ggml_nbytes) else { return 0 };
        // SAFETY: a live tensor of this instance, which the function only reads.
        unsafe { count(tensor.address() as Pointer) as u64 }
    }

    /// Whether it is the host's memory, and the backend it belongs to.
    fn found(self, instance: &Instance, scheduler: usize) -> (bool, u32) {
        let (mut on_host, mut backend) = (true, NONE);
        if !self.buffer.is_null() {
            let api = &instance.api;
            // SAFETY: as in `of`.
            let asked = api.ggml_backend_buffer_is_host.map(|ask| unsafe { ask(self.buffer) });
            on_host = asked.unwrap_or(true);
            let get_device = api.ggml_backend_buft_get_device;
            let get_device = get_device.filter(|_| self.buffer_type != NO_BUFFER);
            let buffer_type = self.buffer_type as Pointer;
            // SAFETY: buffer types live as long as their backend's library.
            let device = get_device.map_or(std::ptr::null_mut(), |get| unsafe { get(buffer_type) });
            backend = backends::behind_buffer(scheduler, on_host, device);
        }
        if let Some(adopted) = backends::find(self.backend) {
            backend = adopted.id();
        } else if self.buffer_type == MEMORY {
            backend = backends::behind_buffer(scheduler, true, std::ptr::null_mut());
        }
        (on_host, backend)
    }
}

fn direction(source_on_host: bool, target_on_host: bool) -> u8 {
    match (source_on_host, target_on_host) {
        (true, true) => layout::COPY_HOST_TO_HOST,
        (true, false) => layout::COPY_HOST_TO_DEVICE,
        (false, true) => layout::COPY_DEVICE_TO_HOST,
        (false, false) => layout::COPY_DEVICE_TO_DEVICE,
    }
}
