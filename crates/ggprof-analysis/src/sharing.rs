//! Devices that several processes used: each for how long, and for how long at the same time. While two
//! processes use one device, each waits for the other: neither gets all of it.

use crate::estimates::CopyTimes;
use ggprof_trace::{Backend, BackendIndex, EventId, Measured, ProcessIndex, Trace};

/// A device, in a trace that was made of several recordings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedDevice {
    pub device: String,
    /// At least two.
    pub users: Vec<User>,
    /// Time in which at least one of them used it, and in which at least two did.
    pub used_ns: u64,
    pub together_ns: u64,
}

/// What one process had of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    pub process: ProcessIndex,
    pub used_ns: u64,
    /// The part of it in which another process used it, too.
    pub together_ns: u64,
}

/// The devices that more than one process used, in the order of the trace.
pub fn sharing(trace: &Trace) -> Vec<SharedDevice> {
    let mut groups: Vec<Vec<BackendIndex>> = Vec::new();
    for index in (0..trace.backends.len() as u16).map(BackendIndex) {
        let same = |other: &&mut Vec<BackendIndex>| is_same_device(trace, other[0], index);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups.iter().filter_map(|group| shared(trace, group)).collect()
}

/// Whether two backends work on one device of one machine.
fn is_same_device(trace: &Trace, one: BackendIndex, other: BackendIndex) -> bool {
    let machine =
        |backend: &Backend| Some(trace.processes.get(usize::from(backend.process?.0))?.machine);
    let key = |index| {
        let backend = trace.backend(index);
        (&backend.device, &backend.description, backend.device_type, machine(backend))
    };
    key(one) == key(other)
}

fn shared(trace: &Trace, backends: &[BackendIndex]) -> Option<SharedDevice> {
    let mut uses = uses(trace, backends);
    let mut processes: Vec<ProcessIndex> = uses.iter().map(|of| of.process).collect();
    processes.sort_unstable();
    processes.dedup();
    if processes.len() < 2 {
        return None;
    }
    uses.sort_unstable_by_key(|of| of.start_ns);
    let mut users: Vec<User> =
        processes.iter().map(|&process| User { process, used_ns: 0, together_ns: 0 }).collect();
    let (mut used_ns, mut together_ns) = (0, 0);
    for (from_ns, to_ns, active) in pieces(&uses, &processes) {
        let ns = to_ns - from_ns;
        let count = active.iter().filter(|&&is_active| is_active).count();
        used_ns += if count > 0 { ns } else { 0 };
        together_ns += if count > 1 { ns } else { 0 };
        for (user, _) in users.iter_mut().zip(&active).filter(|(_, is_active)| **is_active) {
            user.used_ns += ns;
            user.together_ns += if count > 1 { ns } else { 0 };
        }
    }
    let backend = trace.backend(backends[0]);
    let device = [&backend.device, &backend.name].into_iter().find(|name| !name.is_empty())?;
    Some(SharedDevice { device: device.clone(), users, used_ns, together_ns })
}

/// A span of time in which a process used a device.
struct Use {
    process: ProcessIndex,
    start_ns: u64,
    end_ns: u64,
}

/// Calls that only start work tell nothing of the device.
fn uses(trace: &Trace, backends: &[BackendIndex]) -> Vec<Use> {
    let copies = CopyTimes::of(trace);
    let mut uses: Vec<Use> = Vec::new();
    for (stretch, events) in trace.events.stretches() {
        let Some(process) = trace.backend(stretch.backend).process else { continue };
        if !backends.contains(&stretch.backend) {
            continue;
        }
        for event in events.map(|at| trace.events.get(EventId(at))) {
            if event.measured == Measured::HostCall || copies.is_untimed(trace, &event) {
                continue;
            }
            let mut put = |start_ns: u64, end_ns: u64| match uses.last_mut() {
                // Ops follow each other closely; most spans of time are one.
                Some(last) if last.process == process && last.end_ns == start_ns => {
                    last.end_ns = end_ns;
                }
                _ => uses.push(Use { process, start_ns, end_ns }),
            };
            let work = trace.work_for(EventId(event.id.0));
            work.iter().for_each(|it| put(it.start_ns, it.start_ns + it.duration_ns));
            if work.is_empty() {
                put(event.start_ns, event.end_ns());
            }
        }
    }
    uses
}

/// Spans of time between two changes, and which processes used the device in each.
fn pieces(uses: &[Use], processes: &[ProcessIndex]) -> Vec<(u64, u64, Vec<bool>)> {
    let place = |process: ProcessIndex| processes.iter().position(|&it| it == process);
    let mut changes: Vec<(u64, usize, i32)> = Vec::with_capacity(2 * uses.len());
    for of in uses {
        let Some(place) = place(of.process) else { continue };
        changes.extend([(of.start_ns, place, 1), (of.end_ns, place, -1)]);
    }
    changes.sort_unstable();
    let mut counts = vec![0; processes.len()];
    let mut pieces: Vec<(u64, u64, Vec<bool>)> = Vec::new();
    for pair in changes.windows(2) {
        let [(from_ns, place, change), (to_ns, ..)] = [pair[0], pair[1]];
        counts[place] += change;
        if to_ns == from_ns {
            continue;
        }
        let active: Vec<bool> = counts.iter().map(|&count| count > 0).collect();
        match pieces.last_mut() {
            Some((_, end_ns, last)) if *end_ns == from_ns && *last == active => *end_ns = to_ns,
            _ => pieces.push((from_ns, to_ns, active)),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::{Provenance, merge, text_fixture};

    const STARTED: u64 = 1_000_000_000;

    fn process(pid: u32, events: &str) -> Trace {
        started(pid, STARTED, events)
    }

    /// On a machine that was started then.
    fn started(pid: u32, started: u64, events: &str) -> Trace {
        let mut trace = text_fixture::parse(&format!("backend 0 CUDA0 gpu\nrun 0..100\n{events}"));
        let clock_anchors = vec![(0, started)];
        trace.provenance = Some(Provenance { pid, clock_anchors, ..Provenance::default() });
        trace
    }

    #[test]
    fn time_at_the_same_time_is_told_apart() {
        let one = process(1, "op CUDA0 ADD 0..30 a run=0\nop CUDA0 ADD 40..60 b run=0");
        let other = process(2, "op CUDA0 MUL 20..50 c run=0\nop CUDA0 MUL 50..55 d run=0");
        let merged = merge(vec![one, other]).unwrap();
        let [device] = &sharing(&merged)[..] else { panic!("one device") };
        assert_eq!((device.device.as_str(), device.used_ns, device.together_ns), ("CUDA0", 60, 25));
        let users: Vec<_> = device.users.iter().map(|it| (it.used_ns, it.together_ns)).collect();
        assert_eq!(users, [(50, 25), (35, 25)]);
    }

    /// Both are brought to the first one's clock by the time of day.
    #[test]
    fn devices_of_two_machines_are_two() {
        let with = |starts: [u64; 3]| {
            let all =
                (1..).zip(starts).map(|(pid, at)| started(pid, at, "op CUDA0 ADD 0..30 a run=0"));
            let found = sharing(&merge(all.collect()).unwrap());
            let users = found.iter().flat_map(|it| &it.users).map(|user| user.process.0);
            users.collect::<Vec<_>>()
        };
        let (later, latest) = (STARTED + 9_000_000_000, STARTED + 99_000_000_000);
        assert!(with([STARTED, later, latest]).is_empty());
        assert_eq!(with([STARTED, later, later]), [1, 2]);
    }

    #[test]
    fn a_process_alone_shares_nothing() {
        assert_eq!(sharing(&process(1, "op CUDA0 ADD 0..30 a run=0")), []);
    }
}
