//! The memory that the program has for its tensors: every buffer of ggml's from its making to its
//! freeing. A program may load its weights before anything is recorded, and keeps them when
//! recording stops: so what lives is known here, and described in each recording.
//!
//! Times are those of `CLOCK_MONOTONIC`: before the first recording nobody has chosen a clock.

use std::ffi::c_int;

use ggprof_spool::layout::{self, BUFFER_ON_HOST, BUFFER_USAGE_UNKNOWN};

use super::device_memory::Told;
use super::instance::Instance;
use super::memory_kinds;
use super::this_thread::ThisThread;
use crate::clock;
use crate::fault::fault_point;
use crate::ffi::api::{Api, Pointer, Symbols, text};
use crate::ffi::tensor::Tensor;
use crate::ffi::which_ggml;
use crate::lock::{HeldAtFork, Ranked, rank};
use crate::patch::loaded_object::{self, LoadedObject, Place};
use crate::recorder::current;
use crate::recorder::definitions::Owner;
use crate::recorder::lane::HeldLane;

/// More buffers than a program has; one whose frees are not seen must not fill the memory.
const MOST_LIVE: usize = 1 << 14;

struct KnownBuffers {
    live: Vec<Buffer>,
    count: u32,
    /// What devices said of their memory.
    told: Vec<Told>,
    /// The functions of the ggml that made the newest buffer, with that ggml's address and the loader's
    /// count of unloads at that time.
    last_api: Option<((Place, u64), Api)>,
}

/// A buffer that was not freed yet.
struct Buffer {
    at: usize,
    id: u32,
    facts: BufferFacts,
    /// The name of the first tensor in it.
    tensor: Vec<u8>,
    born_ns: u64,
    /// It was described to the recorder.
    is_described: bool,
}

/// What ggml says of a buffer.
pub(super) struct BufferFacts {
    bytes: u64,
    /// Where it is, of the host's memory; 0 where that is not known.
    base: usize,
    pub(super) usage: u8,
    pub(super) is_on_host: bool,
    pub(super) type_name: Vec<u8>,
    pub(super) device: Vec<u8>,
}

static KNOWN_BUFFERS: Ranked<{ rank::BUFFERS }, KnownBuffers> =
    Ranked::new(KnownBuffers { live: Vec::new(), count: 0, told: Vec::new(), last_api: None });

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
    &KNOWN_BUFFERS
}

/// A call that makes a buffer. Calls nest: some types of buffers make one of another type and change
/// it, and some make several and one that holds them together. So the result of the outer call counts
/// only if it is the buffer that was made inside, with what it has become, or if none was made inside.
#[derive(Debug)]
pub(crate) struct Making {
    outer: u32,
    made: u32,
}

impl Making {
    pub(crate) fn begin() -> Making {
        ThisThread::with(|this| Making { outer: this.buffers_made.replace(0), made: 0 })
    }

    /// The call has returned this buffer.
    pub(crate) fn note(&mut self, this: &ThisThread, buffer: Pointer, real: usize) {
        if buffer.is_null() || !current::is_on() {
            return;
        }
        let Some(api) = api_behind(real) else { return };
        fault_point!();
        let Some(facts) = BufferFacts::of(&api, buffer) else { return };
        self.made = 1;
        fault_point!();
        let others_were_made = this.buffers_made.get() > 0;
        if !others_were_made {
            // If one is known at this address, it was freed without a call that the agent sees.
            note_free(this, buffer);
        }
        take_in(buffer as usize, facts, others_were_made);
        this.with_lane(describe_all);
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        ThisThread::with(|this| this.buffers_made.set(self.outer + self.made));
    }
}

fn take_in(at: usize, facts: BufferFacts, others_were_made: bool) {
    let mut known = KNOWN_BUFFERS.lock();
    if let Some(buffer) = known.live.iter_mut().find(|buffer| buffer.at == at) {
        (buffer.facts, buffer.is_described) = (facts, false);
        return;
    }
    if others_were_made || known.live.len() >= MOST_LIVE {
        return;
    }
    known.count += 1;
    let (id, born_ns) = (known.count, clock::nanoseconds(libc::CLOCK_MONOTONIC));
    let tensor = Vec::new();
    known.live.push(Buffer { at, id, facts, tensor, born_ns, is_described: false });
}

/// The program says what a buffer is for.
pub(crate) fn note_usage(this: &ThisThread, buffer: Pointer, usage: c_int) {
    let usage = u8::try_from(usage).unwrap_or(BUFFER_USAGE_UNKNOWN);
    let change = |buffer: &mut Buffer| std::mem::replace(&mut buffer.facts.usage, usage) != usage;
    if KNOWN_BUFFERS.lock().change(buffer as usize, change) {
        fault_point!();
        this.with_lane(describe_all);
    }
}

/// A tensor was placed in a buffer. Only the first one's name is kept, and only where ggml does
/// not know what the buffer is for.
pub(crate) fn note_placed(this: &ThisThread, tensor: Pointer, real: usize) -> Option<()> {
    let recorder = current::recording()?;
    if tensor.is_null() || !KNOWN_BUFFERS.lock().live.iter().any(Buffer::wants_name) {
        return None;
    }
    let lane = this.lane(recorder)?;
    let instance = Instance::holding(real, &lane)?;
    let (layout, _) = instance.layouts.as_ref()?;
    fault_point!();
    // SAFETY: the program handed the tensor to the call that has just returned, and holds it.
    let tensor = unsafe { Tensor::new(tensor.cast_const().cast(), layout) };
    let change = |buffer: &mut Buffer| {
        let wants = buffer.wants_name();
        if wants {
            buffer.tensor = tensor.name().to_vec();
        }
        wants
    };
    if KNOWN_BUFFERS.lock().change(tensor.buffer(), change) {
        fault_point!();
        describe_all(&lane);
    }
    Some(())
}

/// The number of the kind of memory at an address of the host's; 0 where it is in no buffer that
/// is known.
pub(super) fn memory_at(lane: &HeldLane<'_>, address: usize) -> u16 {
    let holds = |buffer: &&Buffer| {
        let BufferFacts { base, bytes, .. } = buffer.facts;
        base != 0 && (address.wrapping_sub(base) as u64) < bytes
    };
    let known = KNOWN_BUFFERS.lock();
    known.live.iter().find(holds).map_or(0, |buffer| memory_kinds::number(lane, &buffer.facts))
}

/// The program frees a buffer.
pub(crate) fn note_free(this: &ThisThread, buffer: Pointer) {
    let mut known = KNOWN_BUFFERS.lock();
    let place = known.live.iter().position(|live| live.at == buffer as usize);
    let Some(buffer) = place.map(|place| known.live.swap_remove(place)) else { return };
    drop(known);
    fault_point!();
    this.with_lane(|lane| {
        let mut record = buffer.record(lane, clock::nanoseconds(libc::CLOCK_MONOTONIC));
        lane.define_last(Owner::Buffer(buffer.id), &mut record);
    });
}

/// Describes all buffers of which the recorder does not know everything.
pub(crate) fn describe_all(lane: &HeldLane<'_>) {
    let mut known = KNOWN_BUFFERS.lock();
    for buffer in known.live.iter_mut().filter(|buffer| !buffer.is_described) {
        let mut record = buffer.record(lane, 0);
        lane.define_newest(Owner::Buffer(buffer.id), &mut record);
        buffer.is_described = true;
    }
}

/// Does something with what devices said of their memory. It is under the same lock as the buffers.
pub(super) fn with_told<R>(work: impl FnOnce(&mut Vec<Told>) -> R) -> R {
    work(&mut KNOWN_BUFFERS.lock().told)
}

impl KnownBuffers {
    /// Changes the buffer at an address. True if there is one, and the change made a difference.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut Buffer) -> bool) -> bool {
        let buffer = self.live.iter_mut().find(|buffer| buffer.at == at);
        buffer.is_some_and(|buffer| {
            let has_changed = change(buffer);
            buffer.is_described &= !has_changed;
            has_changed
        })
    }
}

impl Buffer {
    fn wants_name(&self) -> bool {
        const ANY: u8 = 0;
        matches!(self.facts.usage, ANY | BUFFER_USAGE_UNKNOWN) && self.tensor.is_empty()
    }

    fn record(&self, lane: &HeldLane<'_>, died_ns: u64) -> Vec<u8> {
        let BufferFacts { bytes, usage, is_on_host, type_name, device, .. } = &self.facts;
        let mut interner = lane.recorder.interner();
        let head = layout::Buffer {
            usage: *usage,
            buffer: self.id,
            type_name: interner.lasting_text(lane, type_name),
            device: interner.lasting_text(lane, device),
            flags: if *is_on_host { BUFFER_ON_HOST } else { 0 },
            name_bytes: self.tensor.len() as u32,
            bytes: *bytes,
            born_ns: self.born_ns,
            died_ns,
            ..Default::default()
        };
        [&head.encode()[..], &self.tensor].concat()
    }
}

impl BufferFacts {
    /// Of a live buffer; `None` for one without memory, which programs use to
    /// try out what they would need.
    pub(super) fn of(api: &Api, buffer: Pointer) -> Option<BufferFacts> {
        let (size, get_type) =
            (api.ggml_backend_buffer_get_size?, api.ggml_backend_buffer_get_type?);
        // SAFETY: here and below a live buffer, its type and the type's device, which live longer
        // than it, and functions of the ggml that made them.
        let (bytes, buffer_type) = unsafe { (size(buffer) as u64, get_type(buffer)) };
        if bytes == 0 || buffer_type.is_null() {
            return None;
        }
        // SAFETY: as above.
        let usage = api.ggml_backend_buffer_get_usage.map(|ask| unsafe { ask(buffer) });
        // SAFETY: as above.
        let is_on_host = api.ggml_backend_buffer_is_host.map(|ask| unsafe { ask(buffer) });
        let name = |ask: Option<unsafe extern "C-unwind" fn(Pointer) -> *const _>, of: Pointer| {
            let ask = ask.filter(|_| !of.is_null());
            // SAFETY: as above.
            ask.map_or(&b""[..], |ask| text(unsafe { ask(of) })).to_vec()
        };
        // SAFETY: as above.
        let device = api.ggml_backend_buft_get_device.map(|ask| unsafe { ask(buffer_type) });
        let is_on_host = is_on_host.unwrap_or(false);
        let base = api.ggml_backend_buffer_get_base.filter(|_| is_on_host);
        Some(BufferFacts {
            bytes,
            // SAFETY: as above.
            base: base.map_or(0, |base| unsafe { base(buffer) } as usize),
            usage: usage
                .map_or(BUFFER_USAGE_UNKNOWN, |it| it.try_into().unwrap_or(BUFFER_USAGE_UNKNOWN)),
            is_on_host,
            type_name: name(api.ggml_backend_buft_name, buffer_type),
            device: name(api.ggml_backend_dev_name, device.unwrap_or(std::ptr::null_mut())),
        })
    }
}

/// The functions of the ggml that holds a function which makes buffers or tells of memory. Found without
/// `Instance`, which needs a recording.
pub(super) fn api_behind(real: usize) -> Option<Api> {
    let object = LoadedObject::containing(which_ggml::of_ggml(real))?;
    let found = (object.place(), loaded_object::unloads());
    let known =
        KNOWN_BUFFERS.lock().last_api.as_ref().filter(|(of, _)| *of == found).map(|(_, api)| *api);
    if known.is_some() {
        return known;
    }
    let api = Api::of(&Symbols::of(&object)?);
    KNOWN_BUFFERS.lock().last_api = Some((found, api));
    Some(api)
}
