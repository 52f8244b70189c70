//! When what happened, phase by phase, in the order in which it began.

use crate::done::done;
use crate::estimates::CopyTimes;
use crate::gaps::missing_before;
use crate::phases::Phases;
use ggprof_trace::{
    BackendIndex, BatchId, DeviceType, DeviceWork, Event, EventId, HostTask, Measured, SignatureId,
    StringId, TaskKind, Trace, WorkKind,
};
use hashbrown::HashSet;

/// An event, or a kernel of it: between its kernels an op does nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) event: EventId,
    pub(super) backend: BackendIndex,
    /// Of a kernel that was not used before.
    pub(super) is_first_use: bool,
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
    pub(super) copies: Vec<Claim>,
    /// Calls that only start work elsewhere.
    pub(super) calls: Vec<Claim>,
    pub(super) waits: Vec<(u64, u64)>,
    pub(super) runs: Vec<Run>,
    /// Calls of libllama.
    pub(super) batches: Vec<(u64, u64)>,
}

pub(super) struct Claims {
    pub(super) phases: Vec<PhaseClaims>,
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
        phases: Vec::new(),
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
    claims.sort();
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
        let mut work = &trace.device_work[..];
        let mut used = Used::of(trace);
        let copies = CopyTimes::of(trace);
        for event in trace.events.iter() {
            let before = work.iter().take_while(|it| it.event < event.id).count();
            let own = work[before..].iter().take_while(|it| it.event == event.id).count();
            let own_work = &work[before..before + own];
            work = &work[before + own..];
            let run = event.graph_run.map(|run| run.0 as usize);
            if let Some(seen) = run.and_then(|run| self.is_seen.get_mut(run)) {
                *seen = true;
            }
            let phase = run.and_then(|run| phases.phase_of_run.get(run));
            let list = match phase.map(|&phase| &mut self.phases[phase as usize]) {
                Some(own) if is_call(&copies, &event) => &mut own.calls,
                Some(own) if event.is_op() => &mut own.ops,
                Some(own) => &mut own.copies,
                None if event.is_op() || is_call(&copies, &event) => continue,
                None => &mut self.lone_copies,
            };
            put(list, &event, own_work, |work| used.is_first(trace, &event, work));
        }
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

    fn sort(&mut self) {
        for own in &mut self.phases {
            by_start(&mut own.ops);
            by_start(&mut own.copies);
            by_start(&mut own.calls);
            own.waits.sort();
            own.batches.sort();
            own.batches.dedup();
            own.runs.sort_by_key(|run| run.start_ns);
        }
        by_start(&mut self.lone_copies);
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
    fn of(trace: &Trace) -> Self {
        let is_from_the_start = missing_before(trace) == 0 && !trace.is_part;
        Self { kernels: HashSet::new(), is_from_the_start }
    }

    fn is_first(&mut self, trace: &Trace, event: &Event, work: &DeviceWork) -> bool {
        let kernel = (event.backend, work.name, trace.node(event.node).signature);
        let is_new = work.kind == WorkKind::Kernel && self.kernels.insert(kernel);
        work.first_use || (is_new && self.is_from_the_start)
    }
}

fn put(
    list: &mut Vec<Claim>,
    event: &Event,
    work: &[DeviceWork],
    mut is_first: impl FnMut(&DeviceWork) -> bool,
) {
    let claim = |start_ns: u64, end_ns: u64, is_first_use: bool| Claim {
        start_ns,
        end_ns,
        event: event.id,
        backend: event.backend,
        is_first_use,
    };
    if work.is_empty() {
        list.push(claim(event.start_ns, event.end_ns(), false));
    }
    list.extend(
        work.iter()
            .map(|it| claim(it.start_ns, it.start_ns.saturating_add(it.duration_ns), is_first(it))),
    );
}

/// Stable, because that sort is quick with what is in order already.
fn by_start(claims: &mut [Claim]) {
    claims.sort_by_key(|claim| claim.start_ns);
}

/// Those that begin within a time.
pub(super) fn within(claims: &[Claim], (start_ns, end_ns): (u64, u64)) -> &[Claim] {
    let first = claims.partition_point(|claim| claim.start_ns < start_ns);
    let behind = claims.partition_point(|claim| claim.start_ns < end_ns);
    &claims[first..behind.max(first)]
}
