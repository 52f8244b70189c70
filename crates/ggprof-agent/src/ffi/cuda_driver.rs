//! A few functions of CUDA's driver, for timing a stream by events. The driver's
//! and not the runtime's: those remember the last error for the program to find.
//! Libraries of the runtime and of the driver share streams and events.

use std::ffi::{CStr, c_void};

use super::api::{Scope, as_c_str};

/// A stream of the program's, of the runtime or of the driver.
pub(crate) type Stream = *mut c_void;

const DRIVER: &CStr = c"libcuda.so.1";

macro_rules! driver {
    ($($field:ident = $name:ident: fn($($argument:ty),*);)*) => {
        /// The driver that the program uses.
        #[derive(Clone, Copy, Debug)]
        #[allow(clippy::type_complexity)]
        pub(crate) struct Driver {
            $($field: unsafe extern "C-unwind" fn($($argument),*) -> u32,)*
        }

        impl Driver {
            /// `None` where no driver is loaded or it lacks one of the functions.
            pub(crate) fn loaded() -> Option<Driver> {
                let scope = Scope::of(DRIVER)?;
                // SAFETY: the driver's symbols of these names have these
                // signatures in CUDA's headers since CUDA 11.
                unsafe { Some(Driver {
                    $($field: std::mem::transmute::<usize, Option<_>>(scope.find(
                        const { as_c_str(concat!(stringify!($name), "\0")) }))?,)*
                }) }
            }
        }
    };
}

driver! {
    event_create = cuEventCreate: fn(*mut *mut c_void, u32);
    event_record = cuEventRecord: fn(*mut c_void, Stream);
    event_query = cuEventQuery: fn(*mut c_void);
    event_synchronize = cuEventSynchronize: fn(*mut c_void);
    event_elapsed = cuEventElapsedTime: fn(*mut f32, *mut c_void, *mut c_void);
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

fn succeeded(status: u32) -> Option<()> {
    (status == 0).then_some(())
}
