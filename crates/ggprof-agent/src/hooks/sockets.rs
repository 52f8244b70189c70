//! What libraries with ggml's RPC send to other machines and receive from them: their calls of the
//! C library's functions for sockets, through slots of their own. Other libraries keep theirs, so a
//! program without RPC pays nothing.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::clock;
use crate::fault::fault_point;
use crate::observe::fail_open::guard;
use crate::observe::transfers::{self, Way};
use crate::patch::exports;
use crate::patch::got;
use crate::patch::loaded_object::LoadedObject;

/// A function that every version of ggml's RPC shows.
pub(super) const SIGN: &CStr = c"ggml_backend_rpc_buffer_type";

type Send = unsafe extern "C-unwind" fn(c_int, *const c_void, usize, c_int) -> isize;
type Receive = unsafe extern "C-unwind" fn(c_int, *mut c_void, usize, c_int) -> isize;
type Connect = unsafe extern "C-unwind" fn(c_int, *const c_void, u32) -> c_int;
type Accept = unsafe extern "C-unwind" fn(c_int, *mut c_void, *mut u32) -> c_int;
type CloseSocket = unsafe extern "C-unwind" fn(c_int) -> c_int;

/// The functions, in the order of [`REAL`].
const NAMES: [&CStr; 5] = [c"send", c"recv", c"connect", c"accept", c"close"];
const SEND: usize = 0;
const RECEIVE: usize = 1;
const CONNECT: usize = 2;
const ACCEPT: usize = 3;
const CLOSE: usize = 4;

/// What the slots led to, kept before a hook can be called.
static REAL: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

fn hook_of(number: usize) -> usize {
    match number {
        SEND => send as *const () as usize,
        RECEIVE => receive as *const () as usize,
        CONNECT => connect as *const () as usize,
        ACCEPT => accept as *const () as usize,
        _ => close as *const () as usize,
    }
}

/// Hooks a library that has just been loaded, if it has ggml's RPC. Asks the loader.
pub(super) fn hook(object: &LoadedObject) {
    if !exports::shows(object.base, object.dynamic, SIGN) {
        return;
    }
    got::bind(object, |name| NAMES.contains(&name));
    fault_point!();
    got::for_each(object, |slot| {
        let Some(number) = NAMES.iter().position(|name| *name == slot.name) else { return };
        let (real, hook) = (slot.value(), hook_of(number));
        if real == 0 || real == hook || !slot.is_bound(object) {
            return;
        }
        // Two libraries that mean different functions cannot both be served.
        let kept = REAL[number].compare_exchange(0, real, Ordering::AcqRel, Ordering::Acquire);
        if kept.is_ok() || kept == Err(real) {
            slot.replace(object, hook);
        }
    });
}

/// While this value lives, what the C library says of the last error stays as it is.
struct LastError(c_int);

impl LastError {
    fn keep() -> LastError {
        // SAFETY: this thread's own.
        LastError(unsafe { *libc::__errno_location() })
    }
}

impl Drop for LastError {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// The real function of a slot that leads to a hook: kept before the hook was placed. The C library's
/// function of this name has this type.
macro_rules! real {
    ($number:expr, $type:ty) => {
        std::mem::transmute::<usize, $type>(REAL[$number].load(Ordering::Acquire))
    };
}

unsafe extern "C-unwind" fn send(
    fd: c_int,
    data: *const c_void,
    bytes: usize,
    flags: c_int,
) -> isize {
    let start = clock::ticks();
    // SAFETY: the real function, which the library would have called with what it passed.
    let sent = unsafe { real!(SEND, Send)(fd, data, bytes, flags) };
    let _error = LastError::keep();
    guard((), |this| _ = transfers::note(this, fd, Way::Sent, sent, start));
    sent
}

unsafe extern "C-unwind" fn receive(
    fd: c_int,
    data: *mut c_void,
    bytes: usize,
    flags: c_int,
) -> isize {
    let start = clock::ticks();
    // SAFETY: as above.
    let received = unsafe { real!(RECEIVE, Receive)(fd, data, bytes, flags) };
    let _error = LastError::keep();
    guard((), |this| _ = transfers::note(this, fd, Way::Received, received, start));
    received
}

unsafe extern "C-unwind" fn connect(fd: c_int, address: *const c_void, bytes: u32) -> c_int {
    // SAFETY: as above.
    let status = unsafe { real!(CONNECT, Connect)(fd, address, bytes) };
    let _error = LastError::keep();
    if status == 0 {
        guard((), |_| transfers::begin(fd));
    }
    status
}

unsafe extern "C-unwind" fn accept(fd: c_int, address: *mut c_void, bytes: *mut u32) -> c_int {
    // SAFETY: as above.
    let accepted = unsafe { real!(ACCEPT, Accept)(fd, address, bytes) };
    let _error = LastError::keep();
    if accepted >= 0 {
        guard((), |_| transfers::begin(accepted));
    }
    accepted
}

unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    // Before it is closed: right afterwards another connection may have its number.
    transfers::end(fd);
    // SAFETY: as above.
    unsafe { real!(CLOSE, CloseSocket)(fd) }
}
