//! Being attached to CUDA: between `attach` and `detach`, CUPTI reports every launch and every
//! piece of work. Its reports are decoded here; `listening` knows what they mean.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;

use super::calls::{Cupti, CuptiFailure, Subscriber};
use super::raw::{self, domain, kind, resource};
use crate::devices::cuda::ranks;
use crate::fault::fault_point;
use crate::lock::Ranked;

const KINDS: [u32; 4] = [kind::CONCURRENT_KERNEL, kind::MEMCPY, kind::MEMCPY2, kind::MEMSET];

/// The functions CUPTI calls while attached. They live as long as the agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callbacks {
    pub(crate) event: raw::CuptiCallback,
    pub(crate) buffer_requested: raw::BufferRequested,
    pub(crate) buffer_completed: raw::BufferCompleted,
    pub(crate) timestamp: raw::Timestamp,
}

/// CUPTI is attached as long as this value lives. The owner drops it only when the devices have
/// nothing left to do and no other thread is in a call that CUPTI watches.
#[derive(Debug)]
pub(crate) struct Session {
    cupti: &'static Cupti,
    subscriber: Subscriber,
}

impl Session {
    pub(crate) fn attach(
        cupti: &'static Cupti,
        callbacks: Callbacks,
    ) -> Result<Session, CuptiFailure> {
        let subscriber = cupti.subscribe(callbacks.event)?;
        let session = Session { cupti, subscriber };
        fault_point!();
        session.switch_on(callbacks)?;
        Ok(session)
    }

    fn switch_on(&self, callbacks: Callbacks) -> Result<(), CuptiFailure> {
        let cupti = self.cupti;
        cupti.register_timestamp(callbacks.timestamp)?;
        cupti.register_buffers(callbacks.buffer_requested, callbacks.buffer_completed)?;
        self.listen(domain::RUNTIME, raw::RUNTIME_WORK)?;
        self.listen(domain::RUNTIME, raw::RUNTIME_GRAPH)?;
        self.listen(domain::DRIVER, raw::DRIVER_WORK)?;
        self.listen(domain::DRIVER, raw::DRIVER_GRAPH)?;
        let graph_nodes = [resource::GRAPHNODE_CREATED, resource::GRAPHNODE_CLONED];
        self.listen(domain::RESOURCE, &graph_nodes)?;
        KINDS.into_iter().try_for_each(|kind| cupti.enable(kind))
    }

    /// Calls that this version does not know are passed over; none at all is a
    /// failure.
    fn listen(&self, domain: u32, ids: &[u32]) -> Result<(), CuptiFailure> {
        let enable = |&id: &u32| self.cupti.enable_callback(self.subscriber, domain, id);
        let outcomes: Vec<_> = ids.iter().map(enable).collect();
        let heard = outcomes.iter().any(Result::is_ok);
        outcomes.into_iter().find(Result::is_err).filter(|_| !heard).unwrap_or(Ok(()))
    }

    /// Delivers all records there are; those of work still running lack times.
    pub(crate) fn deliver(&self) -> Result<(), CuptiFailure> {
        self.cupti.flush()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Each step is taken even if the one before failed.
        let _ = self.cupti.flush();
        for kind in KINDS {
            let _ = self.cupti.disable(kind);
        }
        let _ = self.cupti.unsubscribe(self.subscriber);
        let _ = self.cupti.finalize();
    }
}

/// Something that CUPTI reports while it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A call that hands work to a device begins on this thread.
    Work { correlation: u32, whole_graph: bool },
    /// A node was added to a CUDA graph that is being captured.
    NodeMade { node: u64 },
    /// A node was copied, into an executable graph.
    NodeCopied { node: u64, original: u64 },
}

/// What a callback is about.
///
/// # Safety
/// The arguments are those that CUPTI called with, and its callback still runs.
pub(crate) unsafe fn decode(
    cupti: &Cupti,
    domain: u32,
    id: u32,
    data: *const c_void,
) -> Option<Event> {
    if data.is_null() {
        return None;
    }
    if domain != domain::RESOURCE {
        // SAFETY: for calls the data is a `CallData`.
        let call = unsafe { &*data.cast::<raw::CallData>() };
        let graphs = if domain == domain::RUNTIME { raw::RUNTIME_GRAPH } else { raw::DRIVER_GRAPH };
        let (correlation, whole_graph) = (call.correlation, graphs.contains(&id));
        let begins = call.site == raw::SITE_ENTER;
        return begins.then_some(Event::Work { correlation, whole_graph });
    }
    // SAFETY: for graph nodes the resource's descriptor is a `GraphData`, whose
    // nodes are live during the callback.
    unsafe {
        let graph = (*data.cast::<raw::ResourceData>()).descriptor.as_ref()?;
        let node = cupti.graph_node_id(graph.node).ok()?;
        match id {
            resource::GRAPHNODE_CREATED => Some(Event::NodeMade { node }),
            resource::GRAPHNODE_CLONED => {
                let original = cupti.graph_node_id(graph.original_node).ok()?;
                Some(Event::NodeCopied { node, original })
            }
            _ => None,
        }
    }
}

/// Bytes of a buffer for records: some five thousand kernels.
const BUFFER_BYTES: usize = 1 << 20;
/// Buffers kept for the next request.
const MOST_KEPT: usize = 8;

static KEPT: Ranked<{ ranks::CUPTI_BUFFERS }, Vec<usize>> = Ranked::new(Vec::new());

const fn buffer_layout() -> Layout {
    match Layout::from_size_align(BUFFER_BYTES, 16) {
        Ok(layout) => layout,
        Err(_) => panic!("a power of two"),
    }
}

/// A buffer for CUPTI to fill, and its size; null without memory.
pub(crate) fn lend_buffer() -> (*mut u8, usize) {
    fault_point!();
    let kept = KEPT.lock().pop();
    // SAFETY: the layout is not empty.
    let buffer = kept.map_or_else(|| unsafe { alloc(buffer_layout()) }, |kept| kept as *mut u8);
    (buffer, if buffer.is_null() { 0 } else { BUFFER_BYTES })
}

/// Takes back a buffer that CUPTI has returned.
///
/// # Safety
/// The buffer came from [`lend_buffer`] and CUPTI will not touch it again.
pub(crate) unsafe fn take_buffer_back(buffer: *mut u8) {
    if buffer.is_null() {
        return;
    }
    let mut kept = KEPT.lock();
    if kept.len() < MOST_KEPT {
        kept.push(buffer as usize);
    } else {
        // SAFETY: allocated by `lend_buffer` with this layout.
        unsafe { dealloc(buffer, buffer_layout()) };
    }
}

/// Records that CUPTI had no room for, on a stream (or anywhere, for null and 0).
pub(crate) fn dropped(cupti: &Cupti, context: *mut c_void, stream: u32) -> u64 {
    cupti.dropped(context, stream).unwrap_or(0) as u64
}
