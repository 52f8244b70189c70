//! When what happened, phase by phase, in the order in which it began.

use crate::estimates::CopyTimes;
use crate::first_uses::FirstUses;
use crate::phases::Phases;
use ggprof_trace::{
    BackendIndex, BatchId, DeviceType, DeviceWork, Event, EventId, EventKind, GraphRunId, HostTask,
    Measured, ProcessIndex, TaskKind, Trace, done,
};
use std::ops::Range;

/// An event, or a kernel of it: between its kernels an op does nothing. There are as many as events,
/// so they are kept short.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    pub(super) event: EventId,
    /// The place of the event's stretch among all.
    pub(super) stretch: u32,
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
        match self.work(trace) {
            Some(work) => work.start_ns,
            None => trace.events.start_in(self.stretch, self.event),
        }
    }

    #[inline]
    pub(super) fn backend(&self, trace: &Trace) -> BackendIndex {
        trace.events.stretch(self.stretch).backend
    }

    /// Start, end, and whose they are.
    #[inline]
    pub(super) fn times(&self, trace: &Trace) -> (u64, u64, EventId) {
        match self.work(trace) {
            Some(work) => {
                (work.start_ns, work.start_ns.saturating_add(work.duration_ns), self.event)
            }
            None => {
                let start_ns = trace.events.start_in(self.stretch, self.event);
                (start_ns, start_ns + trace.events.duration(self.event), self.event)
            }
        }
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
    pub(super) process: Option<ProcessIndex>,
}

/// When something was that belongs to no phase, and whose it is; `None` where that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LoneTime {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    process: Option<ProcessIndex>,
}

impl LoneTime {
    pub(super) fn may_be_of(&self, process: Option<ProcessIndex>) -> bool {
        self.process.is_none_or(|own| Some(own) == process)
    }
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
    fn put_plain(&mut self, trace: &Trace, stretch: u32, ops: Range<u32>) {
        let claim = |at| Claim { event: EventId(at), stretch, work: NO_WORK };
        let measured = trace.events.measured_of(ops.clone());
        if !measured.contains(&Measured::HostCall) {
            self.ops.extend(ops.map(claim));
            return;
        }
        for (at, &measured) in ops.zip(measured) {
            let is_call = measured == Measured::HostCall;
            let list = if is_call { &mut self.calls } else { &mut self.ops };
            list.push(claim(at));
        }
    }
}

pub(super) struct Claims {
    /// The events of each phase, by the places of their stretches. They become claims when its turn
    /// comes.
    events: Vec<Vec<(u32, Range<u32>)>>,
    /// All but events.
    phases: Vec<PhaseClaims>,
    copies: CopyTimes,
    first_uses: FirstUses,
    /// Copies that belong to no graph run.
    pub(super) lone_copies: Vec<Claim>,
    pub(super) lone_waits: Vec<LoneTime>,
    pub(super) compiling: Vec<LoneTime>,
    /// All graph runs.
    pub(super) runs: Vec<Run>,
    pub(super) longest_run_ns: u64,
    /// Backends in the order in which they count, those of devices first.
    pub(super) backends: Vec<BackendIndex>,
    /// Whether each backend computes on the host's processors.
    pub(super) is_of_host: Vec<bool>,
    /// Whether anything was recorded of each graph run.
    pub(super) is_seen: Vec<bool>,
    /// Whether the events of each graph run stand apart from each other.
    is_scattered: Vec<bool>,
}

pub(super) fn claims(trace: &Trace, phases: &Phases) -> Claims {
    let mut claims = Claims {
        events: vec![Vec::new(); phases.phases.len()],
        phases: Vec::new(),
        copies: CopyTimes::of(trace),
        first_uses: FirstUses::of(trace),
        lone_copies: Vec::new(),
        lone_waits: Vec::new(),
        compiling: Vec::new(),
        runs: Vec::new(),
        longest_run_ns: 0,
        backends: by_precedence(trace),
        is_of_host: (0..trace.backends.len() as u16)
            .map(|backend| is_of_host(trace, BackendIndex(backend)))
            .collect(),
        is_seen: vec![false; trace.graph_runs.len()],
        is_scattered: vec![false; trace.graph_runs.len()],
    };
    claims.phases.resize_with(phases.phases.len(), PhaseClaims::default);
    claims.take_events(trace, phases);
    claims.take_runs(trace, phases);
    trace.host_tasks.iter().for_each(|task| claims.take_task(trace, task, phases));
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
        let mut last = None;
        for (place, (stretch, events)) in (0..).zip(trace.events.stretches()) {
            let run = stretch.graph_run.map(|run| run.0 as usize);
            if let Some(run) = run.filter(|&run| run < self.is_seen.len()) {
                self.is_scattered[run] |= self.is_seen[run] && last != Some(run);
                self.is_seen[run] = true;
            }
            last = run;
            let phase = run.and_then(|run| phases.phase_of_run.get(run));
            match phase {
                Some(&phase) => self.events[phase as usize].push((place, events)),
                None if stretch.kind == EventKind::Copy => {
                    let copies = events.map(|at| trace.events.get(EventId(at)));
                    for copy in copies.filter(|copy| !is_call(trace, &self.copies, copy)) {
                        put(&mut self.lone_copies, trace, place, copy.id);
                    }
                }
                None => {}
            }
        }
    }

    /// What belongs to a phase, once. Graph runs that `is_divided` already are left out; it is asked for
    /// those whose events stand together, with them.
    pub(super) fn take_phase(
        &mut self,
        trace: &Trace,
        phase: usize,
        mut is_divided: impl FnMut(GraphRunId, &[(u32, Range<u32>)]) -> bool,
    ) -> PhaseClaims {
        let mut own = std::mem::take(&mut self.phases[phase]);
        let events = std::mem::take(&mut self.events[phase]);
        let run = |(place, _): &(u32, _)| trace.events.stretch(*place).graph_run;
        for of_run in events.chunk_by(|one, other| run(one) == run(other)) {
            let whole = run(&of_run[0]).filter(|run| !self.is_scattered[run.0 as usize]);
            if !whole.is_some_and(|run| is_divided(run, of_run)) {
                self.put_events(trace, of_run, &mut own);
            }
        }
        for claims in [&mut own.ops, &mut own.copies, &mut own.calls] {
            by_start(trace, claims);
        }
        own
    }

    fn put_events(&self, trace: &Trace, events: &[(u32, Range<u32>)], own: &mut PhaseClaims) {
        for (place, events) in events.iter().cloned() {
            let stretch = trace.events.stretch(place);
            if stretch.kind == EventKind::Op && !own.computing.contains(&stretch.backend) {
                own.computing.push(stretch.backend);
            }
            if stretch.kind == EventKind::Op && trace.device_work.is_empty() {
                own.put_plain(trace, place, events);
                continue;
            }
            for event in events.map(|at| trace.events.get(EventId(at))) {
                let list = match event.kind {
                    _ if is_call(trace, &self.copies, &event) => &mut own.calls,
                    EventKind::Op => &mut own.ops,
                    EventKind::Copy => &mut own.copies,
                };
                put(list, trace, place, event.id);
            }
        }
    }

    /// Whether a kernel was not used before.
    pub(super) fn is_first_use(&self, claim: &Claim) -> bool {
        self.first_uses.is_first(claim.work)
    }

    /// The part of an op's time in which its kernel was loaded or compiled; empty for most.
    pub(super) fn loading(&self, trace: &Trace, claim: &Claim) -> (u64, u64) {
        let start_ns = claim.start_ns(trace);
        (start_ns, start_ns + self.first_uses.longer_by(claim.work))
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
                process: run.process,
            };
            self.longest_run_ns = self.longest_run_ns.max(own.done_ns.saturating_sub(run.start_ns));
            self.runs.push(own);
            let claims = &mut self.phases[phase as usize];
            claims.runs.push(own);
            let batch = run.batch.map(|BatchId(batch)| &trace.batches[batch as usize]);
            if let Some(batch) = batch.filter(|it| !it.is_from_positions) {
                let end_ns = batch.end_ns.unwrap_or(run.end_ns);
                claims.batches.push((batch.start_ns, end_ns));
            }
        }
    }

    fn take_task(&mut self, trace: &Trace, task: &HostTask, phases: &Phases) {
        let (start_ns, end_ns) = (task.start_ns, task.start_ns.saturating_add(task.duration_ns));
        let run = task.graph_run.map(|run| run.0 as usize);
        let phase = run.and_then(|run| phases.phase_of_run.get(run));
        let process = run.and_then(|run| trace.graph_runs.get(run)?.process);
        let lone = LoneTime { start_ns, end_ns, process };
        match (task.what, phase) {
            (TaskKind::PipelineCompile, _) => self.compiling.push(lone),
            (TaskKind::Wait, Some(&phase)) => {
                self.phases[phase as usize].waits.push((start_ns, end_ns));
            }
            (TaskKind::Wait, None) => self.lone_waits.push(lone),
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
fn is_call(trace: &Trace, copies: &CopyTimes, event: &Event) -> bool {
    event.measured == Measured::HostCall || copies.is_untimed(trace, event)
}

fn put(list: &mut Vec<Claim>, trace: &Trace, stretch: u32, event: EventId) {
    let work = trace.places_of_work(event);
    if work.is_empty() {
        list.push(Claim { event, stretch, work: NO_WORK });
    }
    list.extend(work.map(|work| Claim { event, stretch, work }));
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
