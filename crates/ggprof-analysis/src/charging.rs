//! How much of a device's time each op is charged with.
//!
//! A recording says when each piece of work began and ended, and which pieces could run side by
//! side. From this follows what counts as an event's time when times are added up. All other
//! questions need it, so the answer is written into the trace, by whoever opens a recording.

mod shares;

use crate::work::work_of;
use ggprof_ggml::{Touched, touched};
use ggprof_trace::{
    DeviceWork, Event, EventId, EventKind, Measured, Signature, Tensor, Trace, WorkKind, WorkOrigin,
};
use hashbrown::{HashMap, HashSet};
use shares::{Piece, Share};

/// Charges the device work of a recording that does not say what each piece is charged with, and
/// marks the ops whose charge is an estimate. What is charged already stays as it is.
pub fn charge(trace: &mut Trace) {
    let origins = std::mem::take(&mut trace.work_origins);
    if origins.is_empty() {
        return;
    }
    let shares = shares_of(trace, &origins);
    for (work, share) in trace.device_work.iter_mut().zip(&shares) {
        work.charged_ns = share.ns;
    }
    for (event, ns, estimated) in by_event(&trace.device_work, &shares) {
        trace.events.set_charge(event, ns);
        // Copies have an engine of their own; what ran beside them took none of their time.
        if estimated && trace.events.get(event).is_op() {
            trace.events.set_measured(event, Measured::Modelled);
        }
    }
}

/// The share of each piece. Computing and copying of each backend are charged apart: a copy
/// engine works beside the kernels, and its time does not belong to an op.
fn shares_of(trace: &Trace, origins: &[WorkOrigin]) -> Vec<Share> {
    let shared = shared_groups(&trace.device_work, origins);
    let mut engines: HashMap<(u32, bool), (Vec<usize>, Vec<Piece>)> = HashMap::new();
    for (at, (work, origin)) in trace.device_work.iter().zip(origins).enumerate() {
        let event = trace.events.get(work.event);
        let is_copy = work.kind == WorkKind::Copy && event.kind == EventKind::Copy;
        let (places, pieces) = engines.entry((origin.backend, is_copy)).or_default();
        places.push(at);
        pieces.push(Piece {
            start_ns: work.start_ns,
            end_ns: work.start_ns + work.duration_ns,
            owner: owner(origin),
            weight: weight(trace, &event, work, origin),
            beside: group(work, origin).is_some_and(|group| shared.contains(&group)),
        });
    }
    let mut shares = vec![Share::default(); origins.len()];
    for (places, pieces) in engines.into_values() {
        for (at, share) in places.into_iter().zip(shares::shares(&pieces)) {
            shares[at] = share;
        }
    }
    shares
}

/// Each event that has device work, with the sum of its shares and whether one is an estimate.
fn by_event(work: &[DeviceWork], shares: &[Share]) -> Vec<(EventId, u64, bool)> {
    let mut events: Vec<(EventId, u64, bool)> = Vec::new();
    for (work, share) in work.iter().zip(shares) {
        match events.last_mut() {
            Some((event, ns, estimated)) if *event == work.event => {
                *ns = ns.saturating_add(share.ns);
                *estimated |= share.estimated;
            }
            _ => events.push((work.event, share.ns, share.estimated)),
        }
    }
    events
}

/// Clock of the device, stream, number.
type Group = (u32, u32, u32);

fn group(work: &DeviceWork, origin: &WorkOrigin) -> Option<Group> {
    origin.group.map(|(clock, number)| (clock, work.stream, number))
}

/// Pieces of one op need not be told apart.
fn owner(origin: &WorkOrigin) -> (u32, Option<u32>) {
    (origin.split, origin.position)
}

/// Groups with work of several ops that nothing kept apart.
fn shared_groups(work: &[DeviceWork], origins: &[WorkOrigin]) -> HashSet<Group> {
    let mut owners = HashMap::new();
    let mut shared = HashSet::new();
    for (work, origin) in work.iter().zip(origins) {
        let owner = owner(origin);
        if let Some(group) = group(work, origin)
            && *owners.entry(group).or_insert(owner) != owner
        {
            shared.insert(group);
        }
    }
    shared
}

/// The bytes of the tensors that the work reads and writes, for sharing out an interval.
fn weight(trace: &Trace, event: &Event, work: &DeviceWork, origin: &WorkOrigin) -> u64 {
    if origin.position.is_none() {
        return work.bytes;
    }
    let signature = trace.signature(event.node);
    if let (false, Some(bytes)) =
        (signature.members.is_empty(), work_of(trace, signature).bytes_moved())
    {
        return bytes;
    }
    let Signature { op, output, sources, .. } = signature;
    let bytes = |tensor: &Tensor| trace.types.bytes_of(tensor).unwrap_or(0);
    let mut read = sources.iter().map(|source| bytes(&source.tensor));
    match touched(trace.text(*op)) {
        Touched::RowsOfTheOutput => bytes(output).saturating_mul(2),
        Touched::RowsOfTheFirstSource => read.next().unwrap_or(0).saturating_mul(2),
        // How many matrices a batch selects is not known, and a weight need not be exact.
        Touched::All | Touched::AllButTheTarget | Touched::SelectedMatrices => {
            read.fold(bytes(output), u64::saturating_add)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    /// Op, charge and clock of each event.
    #[track_caller]
    fn check(text: &str, expected: &[(&str, u64, Measured)]) -> Trace {
        let mut trace = text_fixture::parse(&format!("backend 0 GPU gpu\n{text}"));
        charge(&mut trace);
        let told = |event: Event| (trace.op_name(event.node), event.charged_ns, event.measured);
        let found: Vec<_> = trace.events.iter().map(told).collect();
        assert_eq!(found, expected);
        trace
    }

    #[test]
    fn ops_are_charged_with_their_kernels_and_not_with_gaps() {
        let trace = check(
            "op GPU MUL_MAT 20..80 measured=device
             kernel matvec 20..40
             kernel matvec 60..80
             op GPU ADD 80..90 measured=device
             kernel add 80..90",
            &[("MUL_MAT", 40, Measured::Device), ("ADD", 10, Measured::Device)],
        );
        assert!(trace.work_origins.is_empty());
    }

    #[test]
    fn work_timed_together_is_shared_out_and_said_to_be() {
        check(
            "op GPU MUL_MAT 0..200 measured=device f32[32]
             kernel matvec 0..200 group=1
             op GPU ADD 0..200 measured=device f32[96]
             kernel add 0..200 group=1",
            &[("MUL_MAT", 50, Measured::Modelled), ("ADD", 150, Measured::Modelled)],
        );
    }

    /// The cache that rows are written to is large, and nothing else of it is touched.
    #[test]
    fn ops_of_rows_are_weighed_by_their_rows() {
        check(
            "op GPU SET_ROWS 0..200 measured=device f32[1048576] <- f32[48]
             kernel set_rows 0..200 group=1
             op GPU ADD 0..200 measured=device f32[96]
             kernel add 0..200 group=1",
            // 48 elements read and as many written, against 96.
            &[("SET_ROWS", 100, Measured::Modelled), ("ADD", 100, Measured::Modelled)],
        );
    }

    #[test]
    fn a_fusion_is_weighed_by_all_its_nodes() {
        check(
            "op GPU RMS_NORM 0..400 measured=device f32[32] <- f32[32]
             with MUL f32[32] <- f32[32]@0 f32[32]
             kernel rms_norm_mul 0..400 group=1
             op GPU ADD 0..400 measured=device f32[32]
             kernel add 0..400 group=1",
            &[("RMS_NORM", 300, Measured::Modelled), ("ADD", 100, Measured::Modelled)],
        );
    }

    /// A device that writes timestamps in their order shows the second as short, whatever it took.
    #[test]
    fn work_that_nothing_kept_apart_is_never_called_measured() {
        check(
            "op GPU MUL_MAT 0..196 measured=device
             kernel matvec 0..196 group=1
             op GPU ADD 196..200 measured=device
             kernel add 196..200 group=1",
            &[("MUL_MAT", 196, Measured::Modelled), ("ADD", 4, Measured::Modelled)],
        );
        // Groups of two streams, though their numbers are the same.
        check(
            "op GPU MUL_MAT 0..196 measured=device
             kernel matvec 0..196 group=1
             op GPU ADD 196..200 measured=device
             kernel add 196..200 group=1 stream=2",
            &[("MUL_MAT", 196, Measured::Device), ("ADD", 4, Measured::Device)],
        );
        // Two kernels of one op: together they took what they took.
        check(
            "op GPU MUL_MAT 0..200 measured=device
             kernel matvec 0..196 group=1
             kernel matvec 196..200 group=1",
            &[("MUL_MAT", 200, Measured::Device)],
        );
    }

    #[test]
    fn a_copy_engine_works_beside_the_kernels() {
        check(
            "op GPU MUL_MAT 0..100 measured=device
             kernel matvec 0..100 group=1
             copy GPU D2H 50..150 measured=device
             copied memcpy 50..150 group=1",
            &[("MUL_MAT", 100, Measured::Modelled), ("copy_D2H", 100, Measured::Device)],
        );
    }

    #[test]
    fn what_the_recording_charged_stays() {
        let mut trace = text_fixture::parse(
            "backend 0 GPU gpu
             op GPU MUL_MAT 0..100 measured=device
             kernel matvec 0..100",
        );
        trace.work_origins.clear();
        trace.events.set_charge(EventId(0), 7);
        charge(&mut trace);
        assert_eq!(trace.events.get(EventId(0)).charged_ns, 7);
    }
}
