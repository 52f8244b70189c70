//! Tensors moved between backends. Bytes come from ggml itself, the direction
//! from whether each side's buffer is the host's, the backend from the device
//! the buffer belongs to. A call that may return before the copy is done is
//! marked so: its time is the host's, not the copy's.

use ggprof_spool::layout::{self, CopyEvent, NONE};

use super::backends;
use super::instance::Instance;
use crate::clock;
use crate::ffi::api::Pointer;
use crate::ffi::tensor::Tensor;
use crate::lifecycle;
use crate::recorder::lane::HeldLane;
use crate::recorder::this_thread::ThisThread;

/// What a call of ggml copies, for the device work that is recorded meanwhile.
pub(crate) const READING: u8 = 1;
pub(crate) const WRITING: u8 = 2;
pub(crate) const COPYING: u8 = 3;

/// For as long as it lives, this thread is inside a copy of ggml's. One that a copy makes
/// in turn tells its direction; the cause stays the outer one.
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
    pub(crate) target: Pointer,
    /// Backends the call named, null where it named none.
    pub(crate) source_backend: Pointer,
    pub(crate) target_backend: Pointer,
    /// Part of the target: offset and bytes.
    pub(crate) part: Option<(usize, usize)>,
    pub(crate) may_be_pending: bool,
}

pub(crate) fn note(this: &ThisThread, real: usize, copied: Copied) -> Option<()> {
    let end = clock::ticks();
    let recorder = lifecycle::start_recording()?;
    let lane = recorder.lane(this.preferred_lane.get()).filter(HeldLane::writes)?;
    let instance = Instance::holding(real, &lane)?;
    let (layout, _) = instance.layouts.as_ref()?;
    let side = |tensor: Pointer, backend: Pointer| {
        // SAFETY: the program handed the tensor to the copy that has just
        // returned, and holds it still.
        let tensor =
            (!tensor.is_null()).then(|| unsafe { Tensor::new(tensor.cast_const().cast(), layout) });
        Side::of(instance, tensor, backend, this.scheduler.get())
    };
    let source = side(copied.source, copied.source_backend);
    let target = side(copied.target, copied.target_backend);
    let whole = || {
        let bytes = instance.api.ggml_nbytes?;
        // SAFETY: as above; the function only reads the tensor.
        Some((0, unsafe { bytes(copied.target) }))
    };
    let (offset, bytes) = copied.part.or_else(whole).unwrap_or_default();
    let mut interner = lane.recorder.interner();
    let record = CopyEvent {
        flags: direction(source.on_host, target.on_host)
            | if copied.may_be_pending { layout::COPY_ASYNC } else { 0 }
            | if copied.part.is_some() { layout::COPY_PARTIAL } else { 0 },
        run: this.run.get(),
        source: interner.text(&lane, source.name),
        target: interner.text(&lane, target.name),
        source_backend: source.backend,
        target_backend: target.backend,
        os_thread: this.os_thread(),
        bytes: bytes as u64,
        start: copied.start,
        end,
        offset: offset as u64,
        ..Default::default()
    };
    lane.put_long(&mut record.encode(), &[]);
    Some(())
}

/// One end of a copy.
struct Side<'t> {
    name: &'t [u8],
    on_host: bool,
    backend: u32,
}

impl<'t> Side<'t> {
    fn of(
        instance: &Instance,
        tensor: Option<Tensor<'t>>,
        backend: Pointer,
        scheduler: usize,
    ) -> Side<'t> {
        let mut side = Side { name: b"", on_host: true, backend: NONE };
        let buffer = tensor.map_or(0, |tensor| {
            side.name = tensor.name();
            tensor.view_source().unwrap_or(tensor).buffer()
        });
        if buffer != 0 {
            let (on_host, device) = ask_buffer(instance, buffer as Pointer);
            side.on_host = on_host;
            side.backend = backends::behind_buffer(scheduler, on_host, device);
        }
        if let Some(adopted) = backends::find(backend) {
            side.backend = adopted.id();
        } else if tensor.is_none() {
            side.backend = backends::behind_buffer(scheduler, true, std::ptr::null_mut());
        }
        side
    }
}

fn ask_buffer(instance: &Instance, buffer: Pointer) -> (bool, Pointer) {
    let api = &instance.api;
    // SAFETY: the buffer of a live tensor of this instance.
    let on_host = api.ggml_backend_buffer_is_host.is_none_or(|ask| unsafe { ask(buffer) });
    let device = match (api.ggml_backend_buffer_get_type, api.ggml_backend_buft_get_device) {
        // SAFETY: as above; buffer types live as long as their backend library.
        (Some(get_type), Some(get_device)) => unsafe { get_device(get_type(buffer)) },
        _ => std::ptr::null_mut(),
    };
    (on_host, device)
}

fn direction(source_on_host: bool, target_on_host: bool) -> u8 {
    match (source_on_host, target_on_host) {
        (true, true) => layout::COPY_HOST_TO_HOST,
        (true, false) => layout::COPY_HOST_TO_DEVICE,
        (false, true) => layout::COPY_DEVICE_TO_HOST,
        (false, false) => layout::COPY_DEVICE_TO_DEVICE,
    }
}
