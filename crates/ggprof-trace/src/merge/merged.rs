//! The trace that recordings become, one after another.

use super::CannotMerge;
use super::exchanges::{Exchanges, Part};
use super::host_clocks::ClockShift;
use super::renumbering::Maps;
use crate::model::{
    BackendIndex, Batch, BatchId, Buffer, CopyEnds, Covered, DeviceWork, EventId, Extent,
    FreeMemory, Gap, GraphRun, GraphRunId, HostTask, MemoryIndex, NewEvent, Placement, Process,
    ProcessIndex, Provenance, Quantity, RemoteRun, Sensor, ThreadShare, Trace, Transfer,
};

/// More backends than any machine has.
const MOST_BACKENDS: usize = 1024;

/// All recordings that were taken so far.
pub(super) struct Merged {
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
    pub(super) fn new(recordings: &[Trace], clocks: &[ClockShift], exchanges: Exchanges) -> Self {
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

    pub(super) fn take(
        &mut self,
        at: usize,
        from: Trace,
        clock: ClockShift,
    ) -> Result<(), CannotMerge> {
        let provenance = from.provenance.clone().unwrap_or_default();
        let process = ProcessIndex(self.trace.processes.len() as u16);
        self.trace.processes.push(Process {
            command: provenance.command.clone(),
            pid: provenance.pid,
            cpu: provenance.cpu.clone(),
            machine: clock.machine,
            clock: clock.clock,
            day_clock: clock.day_clock,
            there_ns: from.there_ns().map(|(start_ns, end_ns)| {
                let there = on_axis(Gap { start_ns, end_ns, runs: 0 }, clock);
                (there.start_ns, there.end_ns)
            }),
            gaps: from.unknown_times().into_iter().map(|gap| on_axis(gap, clock)).collect(),
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
            let (call, context) =
                (call.saturating_add(batch.call), context.saturating_add(batch.context));
            self.next_context = self.next_context.max(context.saturating_add(1));
            self.next_call = self.next_call.max(call.saturating_add(1));
            self.trace.batches.push(Batch {
                call,
                context,
                start_ns: maps.ns(batch.start_ns),
                end_ns: batch.end_ns.map(|ns| maps.ns(ns)),
                ..batch.clone()
            });
        }
        for change in &from.context_changes {
            let mut change = *change;
            change.at_ns = maps.ns(change.at_ns);
            change.context = change.context.map(|number| context.saturating_add(number));
            let next = change.context.unwrap_or(0).saturating_add(1);
            self.next_context = self.next_context.max(next);
            self.trace.context_changes.push(change);
        }
        for (place, run) in (0..).zip(&from.graph_runs) {
            if self.exchanges.parts.contains_key(&(at, place)) {
                continue;
            }
            self.own_places.push(self.run_places[at][place as usize]);
            let scheduler = scheduler.saturating_add(run.scheduler);
            self.next_scheduler = self.next_scheduler.max(scheduler.saturating_add(1));
            self.trace.graph_runs.push(GraphRun {
                scheduler,
                start_ns: maps.ns(run.start_ns),
                end_ns: maps.ns(run.end_ns),
                // The numbers are those of one process: they tell nothing of all together.
                number: None,
                batch: run.batch.map(|batch| BatchId(batch_places[batch.0 as usize])),
                process: Some(maps.index),
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
            // Those of damaged files must not end behind all times.
            let start_ns = maps.ns(event.start_ns);
            let duration_ns = event.duration_ns.min(u64::MAX - start_ns);
            let new = events.push(NewEvent {
                node: maps.node(event.node),
                backend: maps.backend(event.backend),
                source_backend: event.source_backend.map(|backend| maps.backend(backend)),
                split: split(event.graph_run, event.split),
                graph_run: event.graph_run.and_then(run),
                start_ns,
                duration_ns,
                ..from.events.again(event)
            });
            if event.charged_ns != duration_ns {
                events.set_charge(new, event.charged_ns.min(duration_ns));
            }
        }
        self.take_work(first, from, maps);
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

    /// What is kept of events beside their columns; the first one has this number here.
    fn take_work(&mut self, first: u32, from: &Trace, maps: &Maps) {
        let event = |id: EventId| EventId(first + id.0);
        let shares = &mut self.trace.events.thread_shares;
        shares.extend(from.events.thread_shares.iter().map(|share| ThreadShare {
            event: event(share.event),
            start_ns: maps.ns(share.start_ns),
            ..*share
        }));
        self.trace.device_work.extend(from.device_work.iter().map(|work| DeviceWork {
            event: event(work.event),
            name: maps.string(work.name),
            start_ns: maps.ns(work.start_ns),
            duration_ns: work.duration_ns.min(u64::MAX - maps.ns(work.start_ns)),
            ..*work
        }));
        self.trace.copy_ends.extend(from.copy_ends.iter().map(|ends| CopyEnds {
            event: event(ends.event),
            source: ends.source.map(|memory| maps.memory(memory)),
            target: ends.target.map(|memory| maps.memory(memory)),
            ..*ends
        }));
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
        self.take_memory(from, maps);
        // Of one program only, which all of them together are not.
        let of_all = |sensor: &&Sensor| sensor.quantity != Quantity::ProgramTime;
        for sensor in from.sensors.iter().filter(of_all) {
            self.take_sensor(sensor, maps);
        }
    }

    /// What a process did not free is there until it is over.
    fn take_memory(&mut self, from: &Trace, maps: &Maps) {
        let process = Some(maps.index);
        let there = self.trace.processes[usize::from(maps.index.0)].there_ns;
        let over_ns = there.map(|(_, last_ns)| last_ns).filter(|&ns| ns < u64::MAX);
        for buffer in &from.buffers {
            let born_ns = maps.ns(buffer.born_ns);
            let freed_ns = buffer.died_ns.map(|ns| maps.ns(ns));
            let died_ns = freed_ns.or(over_ns.map(|ns| born_ns.max(ns).saturating_add(1)));
            self.trace.buffers.push(Buffer { born_ns, died_ns, process, ..buffer.clone() });
        }
        for told in &from.free_memory {
            let at_ns = maps.ns(told.at_ns);
            self.trace.free_memory.push(FreeMemory { at_ns, process, ..told.clone() });
        }
    }

    /// Launchers on one machine read the same sensors; the one that did so longest counts. What they say of
    /// their programs stays apart.
    fn take_sensor(&mut self, sensor: &Sensor, maps: &Maps) {
        let machine = self.trace.processes[usize::from(maps.index.0)].machine;
        let process = Some(maps.index).filter(|_| sensor.quantity.is_of_program());
        let mut sensor = Sensor { machine, process, ..sensor.clone() };
        sensor.times_ns.iter_mut().for_each(|ns| *ns = maps.ns(*ns));
        let key = |it: &Sensor| (it.machine, it.process, it.quantity, it.device, it.name.clone());
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
        join(whole, provenance);
        let before = self.trace.graph_runs.len() as u64 - own_runs;
        whole.newest_of = match (whole.newest_of, all_runs) {
            (None, None) => None,
            (known, new) => Some(known.unwrap_or(before).saturating_add(new.unwrap_or(own_runs))),
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
    pub(super) fn finish(self, clocks: &[ClockShift]) -> Trace {
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

/// A gap by the clock of all. Before and after all that was recorded, every clock is the same.
fn on_axis(gap: Gap, clock: ClockShift) -> Gap {
    let start_ns = if gap.start_ns == 0 { 0 } else { clock.ns(gap.start_ns) };
    let end_ns = if gap.end_ns == u64::MAX { u64::MAX } else { clock.ns(gap.end_ns) };
    Gap { start_ns, end_ns, ..gap }
}

/// What is said of one recording is said of all of them.
fn join(whole: &mut Provenance, provenance: Provenance) {
    whole.command = format!("{}, {}", whole.command, provenance.command);
    if whole.system.is_empty() {
        whole.system = provenance.system;
    } else if !provenance.system.is_empty() && !whole.system.contains(&provenance.system) {
        whole.system = format!("{}; {}", whole.system, provenance.system);
    }
    for driver in provenance.drivers {
        if !whole.drivers.contains(&driver) {
            whole.drivers.push(driver);
        }
    }
    whole.recorded_at_unix_ns = whole.recorded_at_unix_ns.min(provenance.recorded_at_unix_ns);
    whole.clock_error_ns = whole.clock_error_ns.max(provenance.clock_error_ns);
    whole.device_clock_error_ns = whole.device_clock_error_ns.max(provenance.device_clock_error_ns);
    for ggml in provenance.ggml {
        if !whole.ggml.contains(&ggml) {
            whole.ggml.push(ggml);
        }
    }
    whole.attached |= provenance.attached;
    whole.cut_short |= provenance.cut_short;
    whole.unfinished_runs = whole.unfinished_runs.saturating_add(provenance.unfinished_runs);
    if whole.extent == Extent::ToTheEnd {
        whole.extent = provenance.extent;
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
