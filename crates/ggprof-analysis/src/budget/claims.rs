//! When what happened, phase by phase, in the order in which it began.

use crate::done::done;
use crate::estimates::CopyTimes;
use crate::gaps::missing_before;
use crate::phases::Phases;
use ggprof_trace::{
    BackendIndex, BatchId, DeviceType, DeviceWork, Event, EventId, EventKind, HostTask, Measured,
    SignatureId, Stretch, StringId, TaskKind, Trace, WorkKind,
};
use hashbrown::HashSet;
use std::ops::Range;

/// An event, or a kernel of it: between its kernels an op does nothing. There are as many as events,
/// so they are kept short.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    pub(super) event: EventId,
    /// The place of the kernel among all device work.
    work: u32,
}

const NO_WORK: u32 = u32::MAX;

impl Claim {
    #[inline]
    fn work<'t>(&self, trace: &'t Trace) -> Option<&'t DeviceWork> {
        trace.device_work.get(self.work as usize)
    }

    #[inline]
    pub(super) fn start_ns(&self, trace: &Trace) -> u64 {
        self.work(trace)
            .map_or_else(|| trace.events.starts()[self.event.0 as usize], |it| it.start_ns)
    }

    #[inline]
    pub(super) fn end_ns(&self, trace: &Trace) -> u64 {
        match self.work(trace) {
            Some(work) => work.start_ns.saturating_add(work.duration_ns),
            None => {
                trace.events.starts()[self.event.0 as usize] + trace.events.duration(self.event)
            }
        }
    }

    #[inline]
    pub(super) fn backend(&self, trace: &Trace) -> BackendIndex {
        trace.events.get(self.event).backend
    }

    /// Start, end, and whose they are.
    #[inline]
    pub(super) fn times(&self, trace: &Trace) -> (u64, u64, EventId) {
        (self.start_ns(trace), self.end_ns(trace), self.event)
    }
}

/// A graph run, from its start until its results were there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) done_ns: u64,
    /// Its place in the trace.
    pub(super) place: u32,
    pub(super) phase: u32,
}

/// What belongs to one phase.
#[derive(Debug, Default)]
pub(super) struct PhaseClaims {
    pub(super) ops: Vec<Claim>,
    /// Whose ops these are.
    pub(super) computing: Vec<BackendIndex>,
    pub(super) copies: Vec<Claim>,
    /// Calls that only start work elsewhere.
    pub(super) calls: Vec<Claim>,
    pub(super) waits: Vec<(u64, u64)>,
    pub(super) runs: Vec<Run>,
    /// Calls of libllama.
    pub(super) batches: Vec<(u64, u64)>,
}

impl PhaseClaims {
    /// Ops that have no kernels.
    fn put_plain(&mut self, trace: &Trace, ops: Range<u32>) {
        for at in ops {
            let list = match trace.events.measured()[at as usize] {
                Measured::HostCall => &mut self.calls,
                _ => &mut self.ops,
            };
            list.push(Claim { event: EventId(at), work: NO_WORK });
        }
    }
}

pub(super) struct Claims {
    /// The events of each phase, which become claims when its turn comes.
    events: Vec<Vec<(Stretch, Range<u32>)>>,
    /// All but events.
    phases: Vec<PhaseClaims>,
    copies: CopyTimes,
    /// Whether each piece of device work is of a kernel that was not used before.
    is_first_use: Vec<bool>,
    /// Copies that belong to no graph run.
    pub(super) lone_copies: Vec<Claim>,
    pub(super) lone_waits: Vec<(u64, u64)>,
    pub(super) compiling: Vec<(u64, u64)>,
    /// All graph runs.
    pub(super) runs: Vec<Run>,
    pub(super) longest_run_ns: u64,
    /// Backends in the order in which they count, those of devices first.
    pub(super) backends: Vec<BackendIndex>,
    /// Whether anything was recorded of each graph run.
    pub(super) is_seen: Vec<bool>,
}

pub(super) fn claims(trace: &Trace, phases: &Phases) -> Claims {
    let mut claims = Claims {
        events: vec![Vec::new(); phases.phases.len()],
        phases: Vec::new(),
        copies: CopyTimes::of(trace),
        is_first_use: Used::all(trace),
        lone_copies: Vec::new(),
        lone_waits: Vec::new(),
        compiling: Vec::new(),
        runs: Vec::new(),
        longest_run_ns: 0,
        backends: by_precedence(trace),
        is_seen: vec![false; trace.graph_runs.len()],
    };
    claims.phases.resize_with(phases.phases.len(), PhaseClaims::default);
    claims.take_events(trace, phases);
    claims.take_runs(trace, phases);
    trace.host_tasks.iter().for_each(|task| claims.take_task(task, phases));
    claims.sort(trace);
    claims
}

/// Whether a backend computes on the host's processors.
pub(crate) fn is_of_host(trace: &Trace, backend: BackendIndex) -> bool {
    matches!(trace.backend(backend).device_type, DeviceType::Cpu | DeviceType::Accelerator)
}

fn by_precedence(trace: &Trace) -> Vec<BackendIndex> {
    let all = (0..trace.backends.len() as u16).map(BackendIndex);
    let (of_host, mut of_devices): (Vec<_>, Vec<_>) = all.partition(|&it| is_of_host(trace, it));
    of_devices.extend(of_host);
    of_devices
}

impl Claims {
    fn take_events(&mut self, trace: &Trace, phases: &Phases) {
        for (stretch, events) in trace.events.stretches() {
            let run = stretch.graph_run.map(|run| run.0 as usize);
            if let Some(seen) = run.and_then(|run| self.is_seen.get_mut(run)) {
                *seen = true;
            }
            let phase = run.and_then(|run| phases.phase_of_run.get(run));
            match phase {
                Some(&phase) => self.events[phase as usize].push((*stretch, events)),
                None if stretch.kind == EventKind::Copy => {
                    let copies = events.map(|at| trace.events.in_stretch(at, stretch));
                    for copy in copies.filter(|copy| !is_call(&self.copies, copy)) {
                        put(&mut self.lone_copies, trace, copy.id);
                    }
                }
                None => {}
            }
        }
    }

    /// What belongs to a phase, once.
    pub(super) fn take_phase(&mut self, trace: &Trace, phase: usize) -> PhaseClaims {
        let mut own = std::mem::take(&mut self.phases[phase]);
        for (stretch, events) in std::mem::take(&mut self.events[phase]) {
            if stretch.kind == EventKind::Op && !own.computing.contains(&stretch.backend) {
                own.computing.push(stretch.backend);
            }
            if stretch.kind == EventKind::Op && trace.device_work.is_empty() {
                own.put_plain(trace, events);
                continue;
            }
            for event in events.map(|at| trace.events.in_stretch(at, &stretch)) {
                let list = match event.kind {
                    _ if is_call(&self.copies, &event) => &mut own.calls,
                    EventKind::Op => &mut own.ops,
                    EventKind::Copy => &mut own.copies,
                };
                put(list, trace, event.id);
            }
        }
        for claims in [&mut own.ops, &mut own.copies, &mut own.calls] {
            by_start(trace, claims);
        }
        own
    }

    /// Whether a kernel was not used before.
    pub(super) fn is_first_use(&self, claim: &Claim) -> bool {
        self.is_first_use.get(claim.work as usize).copied().unwrap_or(false)
    }

    fn take_runs(&mut self, trace: &Trace, phases: &Phases) {
        let done = done(trace);
        for (place, run) in trace.graph_runs.iter().enumerate() {
            let phase = phases.phase_of_run[place];
            let own = Run {
                start_ns: run.start_ns,
                end_ns: run.end_ns,
                done_ns: done[place],
                place: place as u32,
                phase,
            };
            self.longest_run_ns = self.longest_run_ns.max(own.done_ns.saturating_sub(run.start_ns));
            self.runs.push(own);
            let claims = &mut self.phases[phase as usize];
            claims.runs.push(own);
            if let Some(BatchId(batch)) = run.batch {
                let batch = &trace.batches[batch as usize];
                let end_ns = batch.end_ns.unwrap_or(run.end_ns);
                claims.batches.push((batch.start_ns, end_ns));
            }
        }
    }

    fn take_task(&mut self, task: &HostTask, phases: &Phases) {
        let times = (task.start_ns, task.start_ns.saturating_add(task.duration_ns));
        let run = task.graph_run.map(|run| run.0 as usize);
        let phase = run.and_then(|run| phases.phase_of_run.get(run));
        match (task.what, phase) {
            (TaskKind::PipelineCompile, _) => self.compiling.push(times),
            (TaskKind::Wait, Some(&phase)) => self.phases[phase as usize].waits.push(times),
            (TaskKind::Wait, None) => self.lone_waits.push(times),
        }
    }

    fn sort(&mut self, trace: &Trace) {
        for own in &mut self.phases {
            own.waits.sort();
            own.batches.sort();
            own.batches.dedup();
            own.runs.sort_by_key(|run| run.start_ns);
        }
        by_start(trace, &mut self.lone_copies);
        self.lone_waits.sort();
        self.compiling.sort();
        self.runs.sort_by_key(|run| run.start_ns);
    }
}

/// Whether only the call that starts it is known.
fn is_call(copies: &CopyTimes, event: &Event) -> bool {
    event.measured == Measured::HostCall || copies.is_untimed(event)
}

/// Kernels that were used, each with what it computed: drivers load kernels when they are first used,
/// and one name may stand for several.
struct Used {
    kernels: HashSet<(BackendIndex, StringId, SignatureId)>,
    /// Whether the recording begins where the program began to compute.
    is_from_the_start: bool,
}

impl Used {
    /// For each piece of device work whether it is the first use of its kernel.
    fn all(trace: &Trace) -> Vec<bool> {
        let is_from_the_start = missing_before(trace) == 0 && !trace.is_part;
        let mut used = Self { kernels: HashSet::new(), is_from_the_start };
        let is_first = |work: &DeviceWork| {
            let event = trace.events.get(work.event);
            used.is_first(trace, &event, work)
        };
        trace.device_work.iter().map(is_first).collect()
    }

    fn is_first(&mut self, trace: &Trace, event: &Event, work: &DeviceWork) -> bool {
        let kernel = (event.backend, work.name, trace.node(event.node).signature);
        let is_new = work.kind == WorkKind::Kernel && self.kernels.insert(kernel);
        work.first_use || (is_new && self.is_from_the_start)
    }
}

fn put(list: &mut Vec<Claim>, trace: &Trace, event: EventId) {
    let work = trace.places_of_work(event);
    if work.is_empty() {
        list.push(Claim { event, work: NO_WORK });
    }
    list.extend(work.map(|work| Claim { event, work }));
}

/// Most are in order already.
fn by_start(trace: &Trace, claims: &mut [Claim]) {
    if !claims.is_sorted_by_key(|claim| claim.start_ns(trace)) {
        claims.sort_by_key(|claim| claim.start_ns(trace));
    }
}

/// Those that begin within a time.
pub(super) fn within<'c>(
    trace: &Trace,
    claims: &'c [Claim],
    (start_ns, end_ns): (u64, u64),
) -> &'c [Claim] {
    let first = claims.partition_point(|claim| claim.start_ns(trace) < start_ns);
    let behind = claims.partition_point(|claim| claim.start_ns(trace) < end_ns);
    &claims[first..behind.max(first)]
}
