//! A few functions of CUDA's driver, for timing a stream with events. The runtime has such
//! functions too, but those leave their last error behind for the program to find. Runtime and
//! driver share streams and events.

use std::ffi::{CStr, c_void};

use crate::ffi::api::as_c_str;
use crate::patch::scope::Scope;

/// A stream of the program's, of the runtime or of the driver.
pub(crate) type Stream = *mut c_void;

const DRIVER: &CStr = c"libcuda.so.1";

macro_rules! driver {
    ($(#[$doc:meta])* $group:ident { $($field:ident = $name:ident: fn($($argument:ty),*);)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[allow(clippy::type_complexity)]
        pub(crate) struct $group {
            $($field: unsafe extern "C-unwind" fn($($argument),*) -> u32,)*
        }

        impl $group {
            /// `None` where no driver is loaded or it lacks one of the functions.
            pub(crate) fn loaded() -> Option<$group> {
                let scope = Scope::of(DRIVER)?;
                // SAFETY: the driver's symbols of these names have these
                // signatures in CUDA's headers since CUDA 11.
                unsafe { Some($group {
                    $($field: std::mem::transmute::<usize, Option<_>>(scope.find(
                        const { as_c_str(concat!(stringify!($name), "\0")) }))?,)*
                }) }
            }
        }
    };
}

driver! {
    /// What times a stream.
    Driver {
        event_create = cuEventCreate: fn(*mut *mut c_void, u32);
        event_record = cuEventRecord: fn(*mut c_void, Stream);
        event_query = cuEventQuery: fn(*mut c_void);
        event_synchronize = cuEventSynchronize: fn(*mut c_void);
        event_elapsed = cuEventElapsedTime: fn(*mut f32, *mut c_void, *mut c_void);
    }
}

driver! {
    /// What looks into a graph that is being captured.
    CaptureDriver {
        capture_info = cuStreamGetCaptureInfo_v2:
            fn(Stream, *mut u32, *mut u64, *mut *mut c_void, *mut c_void, *mut usize);
        graph_nodes = cuGraphGetNodes: fn(*mut c_void, *mut *mut c_void, *mut usize);
        node_type = cuGraphNodeGetType: fn(*mut c_void, *mut u32);
        graph_edges = cuGraphGetEdges_v2:
            fn(*mut c_void, *mut c_void, *mut c_void, *mut c_void, *mut usize);
    }
}

/// An event of ours. Never destroyed: its context may be gone by then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedEvent(*mut c_void);

// SAFETY: a handle that the driver accepts from any thread.
unsafe impl Send for TimedEvent {}

/// Each: handles are live, as streams are the program's, which computes on them
/// now, and events are never destroyed. `None` is an error of the driver.
impl Driver {
    /// In the context that is current on this thread.
    pub(crate) fn new_event(&self) -> Option<TimedEvent> {
        let mut event = std::ptr::null_mut();
        // SAFETY: see above.
        succeeded(unsafe { (self.event_create)(&mut event, 0) }).map(|()| TimedEvent(event))
    }

    pub(crate) fn record(&self, event: TimedEvent, stream: Stream) -> Option<()> {
        // SAFETY: see above.
        succeeded(unsafe { (self.event_record)(event.0, stream) })
    }

    pub(crate) fn is_over(&self, event: TimedEvent) -> bool {
        // SAFETY: see above.
        unsafe { (self.event_query)(event.0) == 0 }
    }

    pub(crate) fn wait_for(&self, event: TimedEvent) -> Option<()> {
        // SAFETY: see above.
        succeeded(unsafe { (self.event_synchronize)(event.0) })
    }

    pub(crate) fn nanoseconds(&self, from: TimedEvent, to: TimedEvent) -> Option<u64> {
        let mut milliseconds = 0_f32;
        // SAFETY: see above.
        succeeded(unsafe { (self.event_elapsed)(&mut milliseconds, from.0, to.0) })?;
        (milliseconds >= 0.0).then(|| (f64::from(milliseconds) * 1e6) as u64)
    }
}

/// Each: the stream is the program's, which captures into it on this thread now, and
/// the graph and its nodes are those of the capture. `None` is an error of the driver.
impl CaptureDriver {
    /// How many nodes the graph has that is being captured.
    pub(crate) fn node_count(&self, stream: Stream) -> Option<usize> {
        let graph = self.graph(stream)?;
        let mut count = 0;
        // SAFETY: see above; without room for nodes only their number is told.
        succeeded(unsafe { (self.graph_nodes)(graph, std::ptr::null_mut(), &mut count) })?;
        Some(count)
    }

    /// For each node of the graph, in the order they were made, whether it is work
    /// that a device reports: a kernel, copy or fill. `None` where nodes run side by
    /// side: then their order says nothing.
    pub(crate) fn works(&self, stream: Stream) -> Option<Vec<bool>> {
        const LAST_TYPE_OF_WORK: u32 = 2;
        let graph = self.graph(stream)?;
        let mut count = self.node_count(stream)?;
        let (mut edges, null) = (0, std::ptr::null_mut());
        // SAFETY: see above; only the number of edges is asked for.
        succeeded(unsafe { (self.graph_edges)(graph, null, null, null, &mut edges) })?;
        if edges + 1 != count {
            return None;
        }
        let mut nodes = Vec::new();
        nodes.try_reserve_exact(count).ok()?;
        nodes.resize(count, std::ptr::null_mut());
        // SAFETY: see above; there is room for `count` nodes.
        succeeded(unsafe { (self.graph_nodes)(graph, nodes.as_mut_ptr(), &mut count) })?;
        let is_work = |&node: &*mut c_void| {
            let mut kind = 0;
            // SAFETY: see above.
            succeeded(unsafe { (self.node_type)(node, &mut kind) })?;
            Some(kind <= LAST_TYPE_OF_WORK)
        };
        nodes.iter().take(count).map(is_work).collect()
    }

    fn graph(&self, stream: Stream) -> Option<*mut c_void> {
        let (mut status, mut id, mut graph) = (0, 0, std::ptr::null_mut());
        let null = std::ptr::null_mut();
        // SAFETY: see above; the last two are not wanted.
        succeeded(unsafe {
            (self.capture_info)(stream, &mut status, &mut id, &mut graph, null, null.cast())
        })?;
        (!graph.is_null()).then_some(graph)
    }
}

fn succeeded(status: u32) -> Option<()> {
    (status == 0).then_some(())
}
