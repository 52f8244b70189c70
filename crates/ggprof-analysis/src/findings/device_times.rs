//! How long each device computed in a group of phases, and how long at least one did. A budget gives each
//! instant to one device; here an instant counts for each that computes.

use super::scene::Scene;
use crate::budget::budget_of_phase;
use ggprof_trace::{BackendIndex, DeviceWork, EventId, EventKind, Measured};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeviceTimes {
    pub(super) busy: Vec<(BackendIndex, u64)>,
    /// While any of them computed.
    pub(super) together_ns: u64,
}

impl DeviceTimes {
    /// `None` if there is at most one device, or only calls that start work are known of one.
    pub(super) fn of(scene: &Scene<'_>, place: usize) -> Option<Self> {
        let devices: Vec<BackendIndex> = scene.devices_of(&scene.budgets[place]).collect();
        if devices.len() < 2 {
            return None;
        }
        let mut times = times(scene, place, &devices)?;
        times.sort_unstable();
        let of = |device| covered(times.iter().filter(|time| time.2 == device));
        let busy = devices.iter().map(|&device| (device, of(device))).collect();
        Some(Self { busy, together_ns: covered(times.iter()) })
    }
}

/// When which device was at work: between its kernels an op does nothing.
type Time = (u64, u64, BackendIndex);

fn times(scene: &Scene<'_>, place: usize, devices: &[BackendIndex]) -> Option<Vec<Time>> {
    let trace = scene.trace;
    let budget_of_phase = budget_of_phase(scene.phases);
    let mut times: Vec<Time> = Vec::new();
    for (stretch, events) in trace.events.stretches() {
        let backend = stretch.backend;
        let phase = stretch.graph_run.and_then(|run| scene.phases.phase_of_run.get(run.0 as usize));
        let is_its = phase.is_some_and(|it| budget_of_phase[*it as usize] as usize == place);
        if !is_its || stretch.kind != EventKind::Op || !devices.contains(&backend) {
            continue;
        }
        if trace.events.measured_of(events.clone()).contains(&Measured::HostCall) {
            return None;
        }
        let spans = trace.events.spans(events.clone());
        for (at, (start_ns, end_ns)) in events.zip(spans) {
            let work = trace.work_for(EventId(at));
            let end = |it: &DeviceWork| it.start_ns.saturating_add(it.duration_ns);
            times.extend(work.iter().map(|it| (it.start_ns, end(it), backend)));
            times.extend(work.is_empty().then_some((start_ns, end_ns, backend)));
        }
    }
    Some(times)
}

/// By their starts; what several cover counts once.
fn covered<'t>(times: impl Iterator<Item = &'t Time>) -> u64 {
    let (mut until_ns, mut covered_ns) = (0, 0);
    for &(start_ns, end_ns, _) in times {
        covered_ns += end_ns.saturating_sub(start_ns.max(until_ns));
        until_ns = until_ns.max(end_ns);
    }
    covered_ns
}
