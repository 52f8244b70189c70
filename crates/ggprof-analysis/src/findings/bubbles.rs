//! R18: devices that wait for each other, or one that has nothing to do.

use super::device_times::DeviceTimes;
use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::Budget;
use ggprof_trace::BackendIndex;

#[derive(Debug, Clone, PartialEq)]
pub struct Bubbles {
    pub devices: Vec<BusyDevice>,
    /// Of the phase's wall time: at least one of them computes.
    pub together: f64,
    /// They are behind ggml's RPC, whose devices cannot share a layer.
    pub are_servers: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusyDevice {
    pub backend: BackendIndex,
    /// Of the phase's wall time.
    pub share: f64,
}

impl Bubbles {
    /// A device that has nothing to do beside the busiest one.
    pub fn idle(&self) -> Option<&BusyDevice> {
        let most = self.devices.iter().map(|device| device.share).fold(0.0, f64::max);
        self.devices.iter().find(|device| device.share < IDLE * most)
    }
}

pub(super) const RULE: Rule = Rule(18);

/// Of the phase's wall time: one of them is busy for at least so long, or something else is the matter.
const LEAST_BUSY: f64 = 0.5;
/// Of what the busiest device computes.
const IDLE: f64 = 0.05;
/// Devices that share a layer wait for each other's part of it, which nobody knows beforehand: of what
/// would be saved if they did not, so much counts.
const OF_THE_BEST: f64 = 0.5;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    let Some(times) = DeviceTimes::of(scene, place) else { return Vec::new() };
    let share = |&(backend, ns)| BusyDevice { backend, share: budget.share(ns) };
    let devices: Vec<BusyDevice> = times.busy.iter().map(share).collect();
    let is_server = |device: &BusyDevice| {
        let backend = device.backend;
        scene.trace.is_of_server(backend) || scene.trace.backend(backend).endpoint().is_some()
    };
    let are_servers = devices.iter().any(is_server);
    let together = budget.share(times.together_ns);
    let bubbles = Bubbles { devices, together, are_servers };
    // Servers compute one behind the other, whatever is asked for.
    if together < LEAST_BUSY || (are_servers && bubbles.idle().is_none()) {
        return Vec::new();
    }
    // Were the work divided evenly, and done at the same time.
    let evenly_ns = times.busy.iter().map(|(_, ns)| ns).sum::<u64>() / times.busy.len() as u64;
    let saved_ns = times.together_ns.saturating_sub(evenly_ns);
    vec![Finding {
        rule: RULE,
        budget: place,
        cost_ns: (saved_ns as f64 * OF_THE_BEST) as u64,
        is_estimate: true,
        certainty: Certainty::Possible,
        what: What::Bubbles(bubbles),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, found, found_in, tokens};
    use ggprof_trace::{Provenance, Trace, merge, text_fixture};

    #[test]
    fn one_of_two_devices_is_idle() {
        let ops = "op GPU MUL_MAT 0..1000 Qcur-0 run=@ measured=device";
        let one = tokens(3, 1000, 1000, ops);
        let found = check(RULE, &format!("backend 2 GPU2 gpu\n{one}"), 750, &one);
        let What::Bubbles(bubbles) = found.what else { panic!() };
        let shares = bubbles.devices.iter().map(|device| device.share);
        assert_eq!(shares.collect::<Vec<_>>(), [1.0, 0.0]);
        assert_eq!(bubbles.idle().map(|device| device.backend), Some(BackendIndex(2)));
    }

    /// A layer each, one behind the other or, of several prompts, at the same time.
    #[test]
    fn devices_take_turns_or_work_at_the_same_time() {
        let second_from = |start: u64| {
            let end = start + 500;
            let ops = format!(
                "op GPU MUL_MAT 0..500 Qcur-0 run=@ measured=device
                 op GPU2 MUL_MAT {start}..{end} Qcur-1 run=@ measured=device"
            );
            format!("backend 2 GPU2 gpu\n{}", tokens(3, end, end, &ops))
        };
        let found = check(RULE, &second_from(500), 3 * 250, &second_from(10));
        let What::Bubbles(bubbles) = found.what else { panic!() };
        assert_eq!((bubbles.idle(), bubbles.together), (None, 1.0));
    }

    /// Of one, only the calls are known that start its work.
    #[test]
    fn a_device_that_is_not_seen_is_not_idle() {
        let ops = "op GPU MUL_MAT 0..900 Qcur-0 run=@ measured=device
                   op GPU2 SPLIT 900..1000 - run=@ split=1 measured=host_call";
        let found = found(&format!("backend 2 GPU2 gpu\n{}", tokens(3, 1000, 1000, ops)));
        assert!(found.iter().all(|finding| finding.rule != RULE), "{found:?}");
    }

    /// No flag makes servers of RPC work on the same layer.
    #[test]
    fn servers_that_take_turns_are_as_they_have_to_be() {
        let (one, two) = ("RPC0[one:1]", "RPC0[two:2]");
        let turns = |until: u64| {
            let ops = format!(
                "op {one} MUL_MAT 0..{until} Qcur-0 run=@ measured=device
                 op {two} MUL_MAT {until}..1000 Qcur-1 run=@ measured=device"
            );
            let text = tokens(3, 1000, 1000, &ops);
            text_fixture::parse(&format!("backend 0 {one} gpu\nbackend 1 {two} gpu\n{text}"))
        };
        let is_found = |trace| found_in(&trace).iter().any(|finding| finding.rule == RULE);
        assert!(is_found(turns(999)) && !is_found(turns(500)));
    }

    /// Two workers, each with a device of its own, that wait for nobody.
    #[test]
    fn devices_of_other_processes_do_not_count() {
        let worker = |pid: u32, device: &str| {
            let ops = format!("op {device} MUL_MAT 0..600 Qcur-0 run=@ measured=device");
            let text = tokens(3, 1000, 600, &ops);
            let mut trace: Trace = text_fixture::parse(&format!("backend 0 {device} gpu\n{text}"));
            let clock_anchors = vec![(0, 1_000_000_000)];
            trace.provenance = Some(Provenance { pid, clock_anchors, ..Provenance::default() });
            trace
        };
        let costs = |trace: &Trace| -> Vec<_> {
            found_in(trace).into_iter().map(|it| (it.rule, it.cost_ns, it.what)).collect()
        };
        let alone = costs(&worker(1, "CUDA0"));
        assert!(!alone.is_empty());
        let both = merge(vec![worker(1, "CUDA0"), worker(2, "CUDA1")]).unwrap();
        assert_eq!(costs(&both), [&alone[..], &alone[..]].concat());
    }
}
