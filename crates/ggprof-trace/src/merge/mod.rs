//! One trace of several recordings: processes that ran at the same time, on one axis of time.
//!
//! Each process keeps its backends, schedulers, contexts and threads. What is described alike becomes
//! one, so that the same op of two processes is one op on two backends. A graph run that a server
//! computed for a client becomes a part of the client's (`exchanges.rs`).

mod answers;
mod clock_line;
mod exchanges;
mod matching;
mod same_bytes;

use crate::model::{
    Backend, BackendIndex, Batch, BatchId, CopyEnds, Covered, DeviceWork, EventId, Extent,
    GraphRun, GraphRunId, HostTask, MemoryIndex, NewEvent, NodeId, Placement, Process,
    ProcessClock, ProcessIndex, Provenance, Quantity, RemoteRun, Sensor, Signature, SignatureId,
    StringId, Tensor, ThreadShare, Trace, Transfer, TypeInfo,
};
use clock_line::ClockLine;
use exchanges::{Exchanges, Part};
use hashbrown::HashMap;

/// Clocks of one machine since one start differ by less than this in what they say of the time of day.
const SAME_START_NS: u64 = 2_000_000;
/// More backends than any machine has.
const MOST_BACKENDS: usize = 1024;

/// Why recordings cannot be put on one axis of time. Each names its place among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CannotMerge {
    /// It does not say when it was made.
    NoTimes(usize),
    TooManyBackends(usize),
}

/// Puts recordings together, whose device work is charged.
pub fn merge(recordings: Vec<Trace>) -> Result<Trace, CannotMerge> {
    let mut recordings = recordings;
    if recordings.len() == 1 {
        return Ok(recordings.remove(0));
    }
    let mut clocks = clocks(&recordings, |_| true)?;
    let exchanges = exchanges::find(&recordings, &mut clocks);
    rebase(&recordings, &mut clocks)?;
    let mut merged = Merged::new(&recordings, &clocks, exchanges);
    for (at, (trace, clock)) in recordings.into_iter().zip(&clocks).enumerate() {
        merged.take(at, trace, *clock)?;
    }
    Ok(merged.finish(&clocks))
}

/// How each recording's times become those of all.
#[derive(Debug, Clone, Copy)]
struct ClockShift {
    /// To the clock of the process that it worked for.
    line: ClockLine,
    client: Option<usize>,
    /// From there to the clock of all.
    ns: u64,
    clock: ProcessClock,
}

impl ClockShift {
    fn by(ns: u64, clock: ProcessClock) -> Self {
        Self { line: ClockLine::SAME, client: None, ns, clock }
    }

    fn ns(&self, ns: u64) -> u64 {
        self.line.ns(ns).saturating_add(self.ns)
    }
}

/// Servers were brought to the clocks of their clients, so the clock of all is not one of theirs.
fn rebase(recordings: &[Trace], clocks: &mut [ClockShift]) -> Result<(), CannotMerge> {
    let client = |clock: &ClockShift| match clock.clock {
        ProcessClock::Exchanges { .. } => clock.client,
        _ => None,
    };
    let clients: Vec<Option<usize>> = clocks.iter().map(client).collect();
    if clients.iter().all(Option::is_none) {
        return Ok(());
    }
    let fresh = self::clocks(recordings, |at| clients[at].is_none())?;
    for (at, client) in clients.into_iter().enumerate() {
        match client {
            Some(client) => clocks[at].ns = fresh[client].ns,
            None => clocks[at] = fresh[at],
        }
    }
    Ok(())
}

/// The machine that was started first has the clock that all others are brought to.
fn clocks(
    recordings: &[Trace],
    may_be_base: impl Fn(usize) -> bool,
) -> Result<Vec<ClockShift>, CannotMerge> {
    let mut facts = Vec::new();
    for (at, trace) in recordings.iter().enumerate() {
        let provenance = trace.provenance.as_ref().ok_or(CannotMerge::NoTimes(at))?;
        let anchors = &provenance.clock_anchors;
        // When the machine was started, by each of its anchors.
        let started: Vec<u64> = anchors.iter().map(|(ns, unix)| unix.saturating_sub(*ns)).collect();
        let first = *started.first().ok_or(CannotMerge::NoTimes(at))?;
        facts.push((provenance.cpu.as_str(), started, first));
    }
    let bases = facts.iter().enumerate().filter(|(at, _)| may_be_base(*at));
    let base = bases.map(|(_, fact)| fact).min_by_key(|(.., first)| *first);
    let Some(base) = base else { return Ok(Vec::new()) };
    let shift = |(cpu, started, first): &(&str, Vec<u64>, u64)| {
        let is_near = |one: &u64| base.1.iter().any(|other| one.abs_diff(*other) < SAME_START_NS);
        match *cpu == base.0 && started.iter().any(is_near) {
            true => ClockShift::by(0, ProcessClock::Shared),
            false => ClockShift::by(first.saturating_sub(base.2), ProcessClock::TimeOfDay),
        }
    };
    Ok(facts.iter().map(shift).collect())
}

/// All recordings that were taken so far.
struct Merged {
    trace: Trace,
    /// The places of each recording's graph runs and batches among all, which come by their starts.
    run_places: Vec<Vec<u32>>,
    batch_places: Vec<Vec<u32>>,
    /// The places of those that are no part of another's.
    own_places: Vec<u32>,
    exchanges: Exchanges,
    next_scheduler: u32,
    next_context: u32,
    next_call: u32,
    /// Where each recording's backends begin among all.
    first_backends: Vec<u16>,
}

impl Merged {
    fn new(recordings: &[Trace], clocks: &[ClockShift], exchanges: Exchanges) -> Self {
        let is_own = |at: usize, run: usize| !exchanges.parts.contains_key(&(at, run as u32));
        let run_starts = recordings.iter().zip(clocks).enumerate().map(|(at, (trace, clock))| {
            let runs = trace.graph_runs.iter().enumerate();
            runs.map(|(run, it)| is_own(at, run).then(|| clock.ns(it.start_ns))).collect()
        });
        let batch_starts = recordings.iter().zip(clocks).map(|(trace, clock)| {
            trace.batches.iter().map(|batch| Some(clock.ns(batch.start_ns))).collect()
        });
        let mut run_places = places_in_time(run_starts.collect());
        for (&(server, run), part) in &exchanges.parts {
            run_places[server][run as usize] =
                run_places[part.client][part.call.graph_run.0 as usize];
        }
        let batch_places = places_in_time(batch_starts.collect());
        let trace = Trace {
            writer: recordings[0].writer.clone(),
            version: recordings.iter().filter_map(|trace| trace.version).max(),
            ..Trace::default()
        };
        Self {
            run_places,
            batch_places,
            own_places: Vec::new(),
            exchanges,
            trace,
            next_scheduler: 0,
            next_context: 0,
            next_call: 0,
            first_backends: Vec::new(),
        }
    }

    fn take(&mut self, at: usize, from: Trace, clock: ClockShift) -> Result<(), CannotMerge> {
        let provenance = from.provenance.clone().unwrap_or_default();
        let process = ProcessIndex(self.trace.processes.len() as u16);
        self.trace.processes.push(Process {
            command: provenance.command.clone(),
            pid: provenance.pid,
            cpu: provenance.cpu.clone(),
            clock: clock.clock,
        });
        self.first_backends.push(self.trace.backends.len() as u16);
        let maps = Maps::new(&mut self.trace, &from, process, clock);
        if self.trace.backends.len() > MOST_BACKENDS {
            return Err(CannotMerge::TooManyBackends(at));
        }
        self.take_runs(at, &from, &maps, &self.batch_places[at].clone());
        self.take_events(at, &from, &maps, &self.run_places[at].clone());
        self.take_details(&from, &maps);
        self.take_facts(at, from, provenance, &maps);
        Ok(())
    }

    /// Graph runs and what the program handed over, each program's apart.
    fn take_runs(&mut self, at: usize, from: &Trace, maps: &Maps, batch_places: &[u32]) {
        let (scheduler, context, call) = (self.next_scheduler, self.next_context, self.next_call);
        for batch in &from.batches {
            self.next_context = self.next_context.max(context + batch.context + 1);
            self.next_call = self.next_call.max(call + batch.call + 1);
            self.trace.batches.push(Batch {
                call: call + batch.call,
                context: context + batch.context,
                start_ns: maps.ns(batch.start_ns),
                end_ns: batch.end_ns.map(|ns| maps.ns(ns)),
                ..batch.clone()
            });
        }
        for change in &from.context_changes {
            let mut change = *change;
            change.at_ns = maps.ns(change.at_ns);
            change.context = change.context.map(|number| context + number);
            self.next_context = self.next_context.max(change.context.unwrap_or(0) + 1);
            self.trace.context_changes.push(change);
        }
        for (place, run) in (0..).zip(&from.graph_runs) {
            if self.exchanges.parts.contains_key(&(at, place)) {
                continue;
            }
            self.own_places.push(self.run_places[at][place as usize]);
            self.next_scheduler = self.next_scheduler.max(scheduler + run.scheduler + 1);
            self.trace.graph_runs.push(GraphRun {
                scheduler: scheduler + run.scheduler,
                start_ns: maps.ns(run.start_ns),
                end_ns: maps.ns(run.end_ns),
                // The numbers are those of one process: they tell nothing of all together.
                number: None,
                batch: run.batch.map(|batch| BatchId(batch_places[batch.0 as usize])),
            });
        }
    }

    fn take_events(&mut self, at: usize, from: &Trace, maps: &Maps, run_places: &[u32]) {
        let run = |run: GraphRunId| run_places.get(run.0 as usize).copied().map(GraphRunId);
        let parts = &self.exchanges.parts;
        // What a server computed belongs to the split that the client left to it.
        let split = |run: Option<GraphRunId>, own: i32| {
            let part = run.and_then(|run| parts.get(&(at, run.0)));
            part.map_or(own, |part| part.call.split)
        };
        let first = self.trace.events.len() as u32;
        let events = &mut self.trace.events;
        events.reserve(from.events.len());
        for event in from.events.iter() {
            let new = events.push(NewEvent {
                kind: event.kind,
                node: maps.node(event.node),
                backend: maps.backend(event.backend),
                source_backend: event.source_backend.map(|backend| maps.backend(backend)),
                split: split(event.graph_run, event.split),
                graph_run: event.graph_run.and_then(run),
                start_ns: maps.ns(event.start_ns),
                duration_ns: event.duration_ns,
                bytes: event.bytes,
                measured: event.measured,
                threads: from.events.threads(event.id),
            });
            if event.charged_ns != event.duration_ns {
                events.set_charge(new, event.charged_ns);
            }
        }
        let event = |id: EventId| EventId(first + id.0);
        events.thread_shares.extend(from.events.thread_shares.iter().map(|share| ThreadShare {
            event: event(share.event),
            start_ns: maps.ns(share.start_ns),
            ..*share
        }));
        self.trace.device_work.extend(from.device_work.iter().map(|work| DeviceWork {
            event: event(work.event),
            name: maps.string(work.name),
            start_ns: maps.ns(work.start_ns),
            ..*work
        }));
        self.trace.copy_ends.extend(from.copy_ends.iter().map(|ends| CopyEnds {
            event: event(ends.event),
            source: ends.source.map(|memory| maps.memory(memory)),
            target: ends.target.map(|memory| maps.memory(memory)),
            ..*ends
        }));
        self.trace.host_tasks.extend(from.host_tasks.iter().map(|task| HostTask {
            name: maps.string(task.name),
            graph_run: task.graph_run.and_then(run),
            start_ns: maps.ns(task.start_ns),
            ..*task
        }));
        for (of, counts) in from.expert_uses.iter() {
            let Some(run) = run(of.graph_run) else { continue };
            let tokens = (of.tokens, of.tokens_read);
            let counts = counts.iter().copied();
            self.trace.expert_uses.push(maps.node(of.node), run, of.experts, tokens, counts);
        }
    }

    fn take_details(&mut self, from: &Trace, maps: &Maps) {
        let memory = |index: Option<MemoryIndex>| index.map(|index| maps.memory(index));
        self.trace.placements.extend(from.placements.iter().map(|placement| {
            let mut answers = placement.answers.clone();
            answers.iter_mut().for_each(|answer| answer.backend = maps.backend(answer.backend));
            Placement {
                node: maps.node(placement.node),
                backend: maps.backend(placement.backend),
                output: memory(placement.output),
                sources: placement.sources.iter().map(|&index| memory(index)).collect(),
                answers,
            }
        }));
        self.trace.transfers.extend(from.transfers.iter().map(|transfer| Transfer {
            process: Some(maps.index),
            start_ns: maps.ns(transfer.start_ns),
            end_ns: maps.ns(transfer.end_ns),
            ..*transfer
        }));
        for buffer in &from.buffers {
            let mut buffer = buffer.clone();
            buffer.born_ns = maps.ns(buffer.born_ns);
            buffer.died_ns = buffer.died_ns.map(|ns| maps.ns(ns));
            self.trace.buffers.push(buffer);
        }
        // Of one program only, which all of them together are not.
        let of_all = |sensor: &&Sensor| sensor.quantity != Quantity::ProgramTime;
        for sensor in from.sensors.iter().filter(of_all) {
            self.take_sensor(sensor, maps);
        }
    }

    /// Launchers read the same sensors; the one that did so longest counts.
    fn take_sensor(&mut self, sensor: &Sensor, maps: &Maps) {
        let mut sensor = sensor.clone();
        sensor.times_ns.iter_mut().for_each(|ns| *ns = maps.ns(*ns));
        let key = |it: &Sensor| (it.quantity, it.device, it.name.clone());
        let same = self.trace.sensors.iter_mut().find(|it| key(it) == key(&sensor));
        match same {
            Some(known) if known.values.len() >= sensor.values.len() => {}
            Some(known) => *known = sensor,
            None => self.trace.sensors.push(sensor),
        }
    }

    fn take_facts(&mut self, at: usize, from: Trace, provenance: Provenance, maps: &Maps) {
        let is_own = |run: &u32| !self.exchanges.parts.contains_key(&(at, *run));
        let own_runs = (0..from.graph_runs.len() as u32).filter(is_own).count() as u64;
        let seen_elsewhere = self.seen_elsewhere(at, &from);
        for loss in from.losses {
            self.trace.lose_many(loss.kind, loss.count, || loss.detail);
        }
        for mut coverage in from.coverage {
            if coverage.what == Covered::Ops && seen_elsewhere.contains(&coverage.subject) {
                continue;
            }
            coverage.subject = format!("{}: {}", maps.process, coverage.subject);
            self.trace.coverage.push(coverage);
        }
        from.op_numbers.iter().for_each(|(op, number)| self.trace.op_numbers.insert(op, number));
        self.trace.graph_runs_inferred |= from.graph_runs_inferred;
        self.trace.is_part |= from.is_part;
        let all_runs = provenance.newest_of;
        let Some(whole) = &mut self.trace.provenance else {
            let anchors = provenance.clock_anchors.iter();
            let clock_anchors = anchors.map(|(ns, unix)| (maps.ns(*ns), *unix)).collect();
            self.trace.provenance = Some(Provenance { pid: 0, clock_anchors, ..provenance });
            return;
        };
        whole.command = format!("{}, {}", whole.command, provenance.command);
        whole.recorded_at_unix_ns = whole.recorded_at_unix_ns.min(provenance.recorded_at_unix_ns);
        whole.clock_error_ns = whole.clock_error_ns.max(provenance.clock_error_ns);
        whole.device_clock_error_ns =
            whole.device_clock_error_ns.max(provenance.device_clock_error_ns);
        for ggml in provenance.ggml {
            if !whole.ggml.contains(&ggml) {
                whole.ggml.push(ggml);
            }
        }
        whole.cut_short |= provenance.cut_short;
        whole.unfinished_runs += provenance.unfinished_runs;
        if whole.extent == Extent::ToTheEnd {
            whole.extent = provenance.extent;
        }
        let before = self.trace.graph_runs.len() as u64 - own_runs;
        whole.newest_of = match (whole.newest_of, all_runs) {
            (None, None) => None,
            (known, new) => Some(known.unwrap_or(before) + new.unwrap_or(own_runs)),
        };
    }

    /// Backends whose ops the recordings of servers have, by label.
    fn seen_elsewhere(&self, at: usize, from: &Trace) -> Vec<String> {
        let all = (0..from.backends.len() as u16).map(BackendIndex);
        let seen = all.filter(|&it| self.exchanges.shows_all_of(at, from, it));
        seen.map(|it| from.backend(it).label().to_owned()).collect()
    }

    /// What servers computed, by the clock of all.
    fn remote_runs(&self, clocks: &[ClockShift]) -> Vec<RemoteRun> {
        let of = |(&(server, _), part): (&(usize, u32), &Part)| {
            let client = &clocks[part.client];
            let both = |clock: &ClockShift, (from, to): (u64, u64)| (clock.ns(from), clock.ns(to));
            let (call, run) = (&part.call, &part.run);
            RemoteRun {
                graph_run: GraphRunId(self.run_places[part.client][call.graph_run.0 as usize]),
                split: call.split,
                backend: BackendIndex(self.first_backends[part.client] + call.backend.0),
                server: ProcessIndex(server as u16),
                called_ns: both(client, (call.start_ns, call.end_ns)),
                computed_ns: both(&clocks[server], (run.start_ns, run.end_ns)),
                waited_ns: part.answer.map(|answer| both(client, answer)),
            }
        };
        let mut runs: Vec<RemoteRun> = self.exchanges.parts.iter().map(of).collect();
        runs.sort_by_key(|run| (run.called_ns, run.computed_ns));
        runs
    }

    /// Brings into the order of time what has to be.
    fn finish(self, clocks: &[ClockShift]) -> Trace {
        let remote_runs = self.remote_runs(clocks);
        let mut trace = self.trace;
        trace.remote_runs = remote_runs;
        trace.remote_links = self.exchanges.links;
        trace.graph_runs = in_places(trace.graph_runs, self.own_places);
        trace.batches = in_places(trace.batches, self.batch_places.concat());
        trace.context_changes.sort_by_key(|change| change.at_ns);
        trace.transfers.sort_by_key(|transfer| (transfer.start_ns, transfer.offset));
        trace.buffers.sort_by_key(|buffer| buffer.born_ns);
        trace.placements.sort_by_key(|placement| (placement.node, placement.backend));
        trace.placements.dedup_by_key(|placement| (placement.node, placement.backend));
        trace
    }
}

/// The place of each start among all, in the order of time; what has none gets the first place.
fn places_in_time(starts: Vec<Vec<Option<u64>>>) -> Vec<Vec<u32>> {
    let each = starts.iter().enumerate();
    let mut order: Vec<(u64, usize, usize)> = each
        .flat_map(|(recording, starts)| {
            let known = starts.iter().enumerate();
            known.filter_map(move |(at, start_ns)| Some(((*start_ns)?, recording, at)))
        })
        .collect();
    order.sort_unstable();
    let mut places: Vec<Vec<u32>> = starts.iter().map(|starts| vec![0; starts.len()]).collect();
    for (place, (_, recording, at)) in (0..).zip(order) {
        places[recording][at] = place;
    }
    places
}

/// Puts each item in its place.
fn in_places<T>(items: Vec<T>, places: Vec<u32>) -> Vec<T> {
    let mut placed: Vec<(u32, T)> = places.into_iter().zip(items).collect();
    placed.sort_unstable_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, item)| item).collect()
}

/// What the numbers of one recording become.
struct Maps {
    process: String,
    index: ProcessIndex,
    clock: ClockShift,
    strings: Vec<StringId>,
    nodes: Vec<NodeId>,
    backends: Vec<BackendIndex>,
    memories: Vec<MemoryIndex>,
}

impl Maps {
    fn new(trace: &mut Trace, from: &Trace, process: ProcessIndex, clock: ClockShift) -> Self {
        let label = trace.processes[usize::from(process.0)].label();
        let strings: Vec<StringId> =
            from.strings.iter().map(|text| trace.strings.intern(text)).collect();
        let types = types(trace, from);
        let first = trace.backends.len();
        for backend in &from.backends {
            let called = format!("{label} {}", backend.label());
            let id = trace.backends.len() as i32;
            trace.backends.push(Backend { id, process: Some(process), called, ..backend.clone() });
        }
        let backends = (0..from.backends.len()).map(|at| BackendIndex((first + at) as u16));
        let mut memories = Vec::new();
        for kind in &from.memory_kinds {
            let known = trace.memory_kinds.iter().position(|other| other == kind);
            let place = known.unwrap_or_else(|| {
                trace.memory_kinds.push(kind.clone());
                trace.memory_kinds.len() - 1
            });
            memories.push(MemoryIndex(place as u16));
        }
        let nodes = nodes(trace, from, &strings, &types);
        Self {
            process: label,
            index: process,
            clock,
            strings,
            nodes,
            backends: backends.collect(),
            memories,
        }
    }

    fn ns(&self, ns: u64) -> u64 {
        self.clock.ns(ns)
    }

    fn string(&self, id: StringId) -> StringId {
        self.strings[id.index()]
    }

    fn node(&self, id: NodeId) -> NodeId {
        self.nodes[id.0 as usize]
    }

    fn backend(&self, index: BackendIndex) -> BackendIndex {
        self.backends[usize::from(index.0)]
    }

    fn memory(&self, index: MemoryIndex) -> MemoryIndex {
        self.memories[usize::from(index.0)]
    }
}

/// New numbers of the types that another copy of ggml gave the same number.
fn types(trace: &mut Trace, from: &Trace) -> HashMap<i32, i32> {
    let mut numbers = HashMap::new();
    for info in from.types.iter() {
        let same = |known: &TypeInfo| {
            TypeInfo { id: 0, ..known.clone() } == TypeInfo { id: 0, ..info.clone() }
        };
        match trace.types.get(info.id) {
            Some(known) if same(known) => {}
            None => trace.types.insert(info.clone()),
            Some(_) => {
                let known = trace.types.iter().find(|known| same(known)).map(|known| known.id);
                let most = trace.types.iter().map(|known| known.id).max().unwrap_or(0);
                let id = known.unwrap_or(most.saturating_add(1));
                trace.types.insert(TypeInfo { id, ..info.clone() });
                numbers.insert(info.id, id);
            }
        }
    }
    numbers
}

fn nodes(
    trace: &mut Trace,
    from: &Trace,
    strings: &[StringId],
    types: &HashMap<i32, i32>,
) -> Vec<NodeId> {
    let string = |id: StringId| strings[id.index()];
    let tensor = |tensor: Tensor| Tensor {
        type_id: types.get(&tensor.type_id).copied().unwrap_or(tensor.type_id),
        ..tensor
    };
    let mut signatures: Vec<SignatureId> = Vec::new();
    for (_, signature) in from.nodes.signatures() {
        let mut sources = signature.sources.clone();
        sources.iter_mut().for_each(|source| source.tensor = tensor(source.tensor));
        let mut members = signature.members.clone();
        // What is part of a fusion was described before it.
        let known = |id: SignatureId| signatures.get(id.0 as usize).copied();
        members.iter_mut().for_each(|member| {
            member.signature = known(member.signature).unwrap_or(SignatureId(0))
        });
        signatures.push(trace.nodes.intern_signature(Signature {
            op: string(signature.op),
            sub_op: signature.sub_op,
            sub_op_name: signature.sub_op_name.map(string),
            extra: signature.extra.map(string),
            output: tensor(signature.output),
            sources,
            op_params: signature.op_params,
            members,
        }));
    }
    let mut nodes: Vec<NodeId> = Vec::new();
    for id in from.nodes.ids() {
        let node = from.node(id);
        let signature = trace.nodes.signature(signatures[node.signature.0 as usize]).clone();
        let names: Vec<StringId> =
            from.nodes.source_names(id).iter().map(|&it| string(it)).collect();
        let members = from.nodes.members(id).iter();
        let members: Vec<NodeId> =
            members.filter_map(|member| nodes.get(member.0 as usize).copied()).collect();
        let name = node.tensor_name.map(string);
        nodes.push(trace.nodes.intern_fusion(signature, name, &names, &members));
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_fixture;

    /// A process whose machine was started at so many nanoseconds of the time of day.
    fn process(text: &str, command: &str, pid: u32, started: u64) -> Trace {
        let mut trace = text_fixture::parse(text);
        trace.provenance = Some(Provenance {
            command: command.to_owned(),
            pid,
            clock_anchors: vec![(0, started)],
            ..Provenance::default()
        });
        trace
    }

    const STARTED: u64 = 1_000_000_000;
    const ONE: &str = "backend 0 CPU cpu
        run 10..20
        run 50..60
        op CPU ADD 10..20 a run=0 f32[4] <- f32[4]
        op CPU MUL 50..60 b run=1";
    const OTHER: &str = "backend 0 CPU cpu
        run 30..40
        op CPU ADD 30..40 a run=0 f32[4] <- f32[4]";

    fn shown(trace: &Trace) -> Vec<String> {
        let shown = trace.events.iter().map(|event| {
            let run = event.graph_run.map(|run| run.0);
            let backend = trace.backend(event.backend).label();
            format!("{backend} {} {} {run:?}", trace.op_name(event.node), event.start_ns)
        });
        shown.collect()
    }

    #[test]
    fn processes_of_one_machine_share_the_clock_and_nothing_else() {
        let merged =
            merge(vec![process(ONE, "a", 1, STARTED), process(OTHER, "b", 2, STARTED + 700)]);
        let merged = merged.unwrap();
        assert_eq!(
            shown(&merged),
            ["a 1 CPU ADD 10 Some(0)", "a 1 CPU MUL 50 Some(2)", "b 2 CPU ADD 30 Some(1)"]
        );
        assert!(merged.processes.iter().all(|process| process.clock == ProcessClock::Shared));
        let starts: Vec<u64> = merged.graph_runs.iter().map(|run| run.start_ns).collect();
        assert_eq!(starts, [10, 30, 50]);
        assert_ne!(merged.graph_runs[0].scheduler, merged.graph_runs[1].scheduler);
        // The same op is described once.
        assert_eq!(merged.nodes.len(), 2);
    }

    #[test]
    fn other_machines_are_brought_to_the_first_clock_by_the_time_of_day() {
        let later = STARTED + 5_000_000_000;
        let merged =
            merge(vec![process(OTHER, "b", 2, later), process(ONE, "a", 1, STARTED)]).unwrap();
        assert_eq!(shown(&merged)[0], "b 2 CPU ADD 5000000030 Some(2)");
        let clocks: Vec<_> = merged.processes.iter().map(|process| process.clock).collect();
        assert_eq!(clocks, [ProcessClock::TimeOfDay, ProcessClock::Shared]);
    }

    #[test]
    fn what_does_not_say_when_it_was_made_stays_alone() {
        let alone = text_fixture::parse(OTHER);
        let found = merge(vec![process(ONE, "a", 1, STARTED), alone]);
        assert_eq!(found.unwrap_err(), CannotMerge::NoTimes(1));
    }
}
