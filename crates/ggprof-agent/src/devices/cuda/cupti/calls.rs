//! CUPTI's functions as fallible Rust functions: a missing symbol and an error code are the same to
//! the caller.

use std::ffi::c_void;
use std::path::Path;

use super::library::Opened;
use super::raw::{self, CuptiFunctions, Status};

/// What did not work, and what CUPTI said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CuptiFailure {
    call: &'static str,
    /// `None`: the library does not have the function.
    status: Option<Status>,
}

impl CuptiFailure {
    /// A sentence for the user: what happened, and what to try.
    pub(crate) fn sentence(&self) -> String {
        match self.status {
            Some(raw::MULTIPLE_SUBSCRIBERS) => "another tool (Nsight, a debugger, a framework's \
                profiler) already traces this process, and CUDA allows one; stop it and record again"
                .to_owned(),
            Some(status) if raw::INSUFFICIENT_PRIVILEGES.contains(&status) => {
                "the driver allows tracing to administrators only; set \
                NVreg_RestrictProfilingToAdminUsers=0 or run as root"
                    .to_owned()
            }
            Some(status) => format!("CUPTI's {} failed with error {status}", self.call),
            None => format!("the CUPTI library found has no {}", self.call),
        }
    }
}

type Outcome<T = ()> = Result<T, CuptiFailure>;

/// A loaded CUPTI of a known version.
#[derive(Debug)]
pub(crate) struct Cupti {
    symbols: CuptiFunctions,
    pub(crate) version: u32,
    /// Where it was found, for the report.
    pub(crate) path: Box<Path>,
}

macro_rules! call {
    ($cupti:expr, $name:ident($($argument:expr),*)) => {{
        const NAME: &str = stringify!($name);
        match $cupti.symbols.$name {
            None => Err(CuptiFailure { call: NAME, status: None }),
            // SAFETY: the library's own function of this name; every caller below
            // says what its arguments are.
            Some(function) => match unsafe { function($($argument),*) } {
                0 => Ok(()),
                status => Err(CuptiFailure { call: NAME, status: Some(status) }),
            },
        }
    }};
}

/// The agent's place among CUPTI's listeners.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subscriber(*mut c_void);

// SAFETY: a handle that CUPTI accepts from any thread.
unsafe impl Send for Subscriber {}

impl Cupti {
    /// `Err` is a sentence for the user.
    pub(crate) fn from_library(library: Opened) -> Result<Cupti, String> {
        // SAFETY: `library` opened a libcupti, or what the user named as one.
        let symbols = unsafe { CuptiFunctions::find(|name| library.find(name)) };
        let mut cupti = Cupti { symbols, version: 0, path: library.path };
        let mut version = 0;
        // The argument is a number of ours.
        call!(cupti, cuptiGetVersion(&mut version)).map_err(|failure| failure.sentence())?;
        if !raw::KNOWN_VERSIONS.iter().any(|known| known.contains(&version)) {
            return Err(format!(
                "the CUPTI found ({}) is of version {version}, whose records are not known; \
                 CUPTI of CUDA 12 or 13 is, and GGPROF_CUPTI names the file to use",
                cupti.path.display()
            ));
        }
        cupti.version = version;
        Ok(cupti)
    }

    pub(super) fn subscribe(&self, callback: raw::CuptiCallback) -> Outcome<Subscriber> {
        let mut handle = std::ptr::null_mut();
        // The callback lives as long as the agent and uses no user data.
        call!(self, cuptiSubscribe(&mut handle, callback, std::ptr::null_mut()))?;
        Ok(Subscriber(handle))
    }

    pub(super) fn unsubscribe(&self, subscriber: Subscriber) -> Outcome {
        // The handle came from `subscribe` and is given back once.
        call!(self, cuptiUnsubscribe(subscriber.0))
    }

    pub(super) fn enable_callback(&self, subscriber: Subscriber, domain: u32, id: u32) -> Outcome {
        // Numbers and a live handle.
        call!(self, cuptiEnableCallback(1, subscriber.0, domain, id))
    }

    /// The number under which records name the node of a CUDA graph.
    ///
    /// # Safety
    /// `node` is a live node, given by CUPTI in the callback that runs now.
    pub(super) unsafe fn graph_node_id(&self, node: *mut c_void) -> Outcome<u64> {
        let mut id = 0;
        // The node is live by this function's contract.
        call!(self, cuptiGetGraphNodeId(node, &mut id))?;
        Ok(id)
    }

    pub(super) fn register_buffers(
        &self,
        requested: raw::BufferRequested,
        completed: raw::BufferCompleted,
    ) -> Outcome {
        // Functions that live as long as the agent.
        call!(self, cuptiActivityRegisterCallbacks(requested, completed))
    }

    pub(super) fn register_timestamp(&self, timestamp: raw::Timestamp) -> Outcome {
        // A function that lives as long as the agent.
        call!(self, cuptiActivityRegisterTimestampCallback(timestamp))
    }

    pub(super) fn enable(&self, kind: u32) -> Outcome {
        call!(self, cuptiActivityEnable(kind))
    }

    pub(super) fn disable(&self, kind: u32) -> Outcome {
        call!(self, cuptiActivityDisable(kind))
    }

    pub(super) fn flush(&self) -> Outcome {
        call!(self, cuptiActivityFlushAll(raw::FLUSH_FORCED))
    }

    /// Records that CUPTI had no room for since the last question.
    pub(super) fn dropped(&self, context: *mut c_void, stream: u32) -> Outcome<usize> {
        let mut dropped = 0;
        // Context and stream as CUPTI gave them, or none for all.
        call!(self, cuptiActivityGetNumDroppedRecords(context, stream, &mut dropped))?;
        Ok(dropped)
    }

    pub(super) fn finalize(&self) -> Outcome {
        // `session` calls this after everything was synchronised and delivered.
        call!(self, cuptiFinalize())
    }

    /// The record after `record` (the first for null) in a buffer.
    ///
    /// # Safety
    /// The buffer holds `valid` bytes of CUPTI's records, and `record` is null or
    /// one of them.
    pub(super) unsafe fn next_record(
        &self,
        buffer: *mut u8,
        valid: usize,
        mut record: *mut u8,
    ) -> Option<*mut u8> {
        // The buffer is CUPTI's own work by this function's contract.
        match call!(self, cuptiActivityGetNextRecord(buffer, valid, &mut record)) {
            Ok(()) => (!record.is_null()).then_some(record),
            Err(CuptiFailure { status: Some(raw::MAX_LIMIT_REACHED), .. }) => None,
            Err(_) => None,
        }
    }
}
