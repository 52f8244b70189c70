//! How much memory devices have, as they told the program when it asked. Programs ask before they load a
//! model, so answers are kept until there is a recording, and described in each.

use ggprof_spool::layout;

use super::buffers;
use super::this_thread::ThisThread;
use crate::clock;
use crate::fault::fault_point;
use crate::ffi::api::{Pointer, text};
use crate::recorder::current;
use crate::recorder::definitions::Owner;
use crate::recorder::lane::HeldLane;

/// More than a machine has.
const MOST_DEVICES: usize = 64;

/// The last answer of a device.
pub(super) struct Told {
    device: Vec<u8>,
    free: u64,
    total: u64,
    at_ns: u64,
    /// It was described to the recorder.
    is_described: bool,
}

/// A device has answered the program: bytes that are free, and all.
pub(crate) fn note(this: &ThisThread, device: Pointer, real: usize, (free, total): (usize, usize)) {
    if device.is_null() || !current::is_on() {
        return;
    }
    let Some(name) = buffers::api_behind(real).and_then(|api| api.ggml_backend_dev_name) else {
        return;
    };
    fault_point!();
    // SAFETY: the program has just asked this device, with a function of the same ggml; devices are
    // never freed.
    let device = text(unsafe { name(device) }).to_vec();
    let at_ns = clock::nanoseconds(libc::CLOCK_MONOTONIC);
    let told = Told { device, free: free as u64, total: total as u64, at_ns, is_described: false };
    buffers::with_told(|all| match all.iter().position(|known| known.device == told.device) {
        Some(place) => all[place] = told,
        None if all.len() < MOST_DEVICES => all.push(told),
        None => {}
    });
    this.with_lane(describe_all);
}

/// Describes all answers that the recorder does not have.
pub(crate) fn describe_all(lane: &HeldLane<'_>) {
    buffers::with_told(|all| {
        for (place, told) in (0..).zip(all).filter(|(_, told)| !told.is_described) {
            let record = layout::DeviceMemory {
                device: lane.recorder.interner().lasting_text(lane, &told.device),
                free: told.free,
                total: told.total,
                at_ns: told.at_ns,
                ..Default::default()
            };
            lane.define_newest(Owner::DeviceMemory(place), &mut record.encode());
            told.is_described = true;
        }
    });
}
