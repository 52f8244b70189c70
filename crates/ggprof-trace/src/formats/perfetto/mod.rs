//! Perfetto's own format, for ui.perfetto.dev and its trace processor.
//!
//! Each backend has a track, with lanes for its ops and copies below it; phases and graph runs have
//! their tracks above. Of several recordings, each process has a track of its own for all of that but
//! phases. Kernels of devices are stages of a GPU, on the queue they ran on, and counters hold clocks, power
//! and memory. All times are those of the recording's clock; what that was by the time of day is said
//! where it is known. What is missing from the recording is in the statistics of the trace, so that
//! Perfetto warns of it.
//!
//! The packets of each machine name it, except those of the first one, which Perfetto calls the host: to it
//! belongs what is about all of them. Merging has brought all times to one clock already. Perfetto takes
//! another machine's times only when it is told how the clocks compare, so it is told that they agree.
//!
//! Packets are written one by one. Names are described in the first packet of a machine that needs them.

mod device;
mod numbers;
mod packets;
#[cfg(test)]
mod tests;

use super::chrome::{Tracks, lane_name};
use super::lanes::Lanes;
use super::protobuf::Message;
use super::timeline::{Annotations, Counter};
use crate::model::{Event, EventId, EventKind, ProcessIndex, Trace, shape_text};
use hashbrown::{HashMap, HashSet};
use numbers::{counter, descriptor, event, packet, process, stats};
use packets::{Kind, Packets, number_annotation};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::iter;

/// The process, or all of several: what belongs to none of them alone is below it.
const PROCESS: u64 = 1;
/// Below no other track.
const NOWHERE: u64 = 0;

/// Writes `trace` to `out`, which should be buffered.
pub fn write(trace: &Trace, annotations: &Annotations, mut out: impl Write) -> io::Result<()> {
    let (tracks, flows) = (Tracks::of(trace), Flows::of(annotations));
    let mut next_track = PROCESS + 1;
    for machine in machines(trace) {
        let packets = Packets::new(&mut out, machine_id(trace, machine));
        let processes = HashMap::new();
        let mut writer = Writer { trace, machine, packets, next_track, processes };
        writer.whole(annotations, &tracks, &flows)?;
        next_track = writer.next_track;
    }
    Ok(())
}

/// The machine of the first process, and then the others.
fn machines(trace: &Trace) -> Vec<u16> {
    let all: BTreeSet<u16> = trace.processes.iter().map(|process| process.machine).collect();
    let host = host(trace);
    iter::once(host).chain(all.into_iter().filter(|&machine| machine != host)).collect()
}

/// What belongs to no process belongs to its machine.
fn host(trace: &Trace) -> u16 {
    trace.machine_of(None)
}

/// As reports number machines; the host has none.
fn machine_id(trace: &Trace, machine: u16) -> Option<u64> {
    Some(u64::from(machine) + 1).filter(|_| machine != host(trace))
}

/// 0 is no process of a user.
fn pid_of(trace: &Trace) -> Option<u64> {
    trace.provenance.as_ref().map(|facts| u64::from(facts.pid)).filter(|&pid| pid > 0)
}

/// Writes what belongs to one machine.
struct Writer<'t, W> {
    trace: &'t Trace,
    machine: u16,
    packets: Packets<W>,
    next_track: u64,
    /// The tracks of its processes, where there are several.
    processes: HashMap<ProcessIndex, u64>,
}

/// A slice of which nothing but its name is known.
type Named = (String, u64, u64);

impl<W: Write> Writer<'_, W> {
    fn whole(
        &mut self,
        annotations: &Annotations,
        tracks: &Tracks,
        flows: &Flows,
    ) -> io::Result<()> {
        let machine = self.machine;
        let is_host = machine == host(self.trace);
        if is_host {
            self.clocks()?;
            self.all_processes()?;
            let phases = annotations.phases.iter();
            let phases = phases.map(|phase| (phase.name.clone(), phase.start_ns, phase.end_ns));
            self.slices(PROCESS, "phases", phases.collect())?;
        } else {
            self.packets.agreeing_clocks(self.start_ns())?;
        }
        self.own_processes()?;
        self.overview()?;
        self.backends(tracks, flows)?;
        self.threads()?;
        let is_here = |process| self.owner(process).is_some();
        let here: Vec<bool> =
            self.trace.backends.iter().map(|backend| is_here(backend.process)).collect();
        device::stages(self.trace, &here, &mut self.packets)?;
        for counter in annotations.counters.iter().filter(|it| it.machine == machine) {
            self.counter(counter)?;
        }
        if is_host { self.losses(annotations) } else { Ok(()) }
    }

    fn start_ns(&self) -> u64 {
        self.trace.span_ns().map_or(0, |(start_ns, _)| start_ns)
    }

    fn clocks(&mut self) -> io::Result<()> {
        let facts = self.trace.provenance.as_ref();
        let anchors = facts.map_or(&[][..], |facts| &facts.clock_anchors);
        if anchors.is_empty() {
            return self.packets.clocks(self.start_ns(), None);
        }
        anchors.iter().try_for_each(|&(at_ns, unix_ns)| self.packets.clocks(at_ns, Some(unix_ns)))
    }

    fn all_processes(&mut self) -> io::Result<()> {
        let facts = self.trace.provenance.as_ref();
        let name = facts.map_or(&*self.trace.writer, |facts| &facts.command);
        self.process_track(PROCESS, pid_of(self.trace), name)
    }

    fn own_processes(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let mut known = HashSet::new();
        for (at, of) in (0..).zip(&trace.processes) {
            if of.machine != self.machine {
                continue;
            }
            let track = self.next_track;
            self.next_track += 1;
            self.processes.insert(ProcessIndex(at), track);
            let name = match trace.has_machines() {
                true => format!("{}, machine {}", of.command, u32::from(of.machine) + 1),
                false => of.command.clone(),
            };
            // A machine may use a number again for a later process.
            let pid = Some(u64::from(of.pid)).filter(|&pid| pid > 0 && known.insert(pid));
            self.process_track(track, pid, &name)?;
        }
        Ok(())
    }

    fn process_track(&mut self, track: u64, pid: Option<u64>, name: &str) -> io::Result<()> {
        let Some(pid) = pid else { return self.packets.track(track, NOWHERE, name, |_| ()) };
        self.packets.track(track, NOWHERE, "", |it| {
            it.with(descriptor::PROCESS, |it| {
                it.number(process::PID, pid).text(process::NAME, name);
            });
        })
    }

    /// What all of a process is below; `None` on other machines.
    fn owner(&self, process: Option<ProcessIndex>) -> Option<u64> {
        let known = process.filter(|process| usize::from(process.0) < self.trace.processes.len());
        match known {
            Some(process) => self.processes.get(&process).copied(),
            None => Some(PROCESS).filter(|_| self.machine == host(self.trace)),
        }
    }

    /// A new track below another.
    fn track(&mut self, parent: u64, name: &str) -> io::Result<u64> {
        let uuid = self.next_track;
        self.next_track += 1;
        self.packets.track(uuid, parent, name, |_| ())?;
        Ok(uuid)
    }

    /// Graph runs and what the host did, above everything else.
    fn overview(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let mut runs: BTreeMap<u64, Vec<Named>> = BTreeMap::new();
        for (at, run) in trace.graph_runs.iter().enumerate() {
            let Some(owner) = self.owner(run.process) else { continue };
            let slice = (format!("graph run {at}"), run.start_ns, run.end_ns);
            runs.entry(owner).or_default().push(slice);
        }
        for (owner, runs) in runs {
            self.slices(owner, "graph runs", runs)?;
        }
        let mut tasks: BTreeMap<u64, Vec<Named>> = BTreeMap::new();
        for task in &trace.host_tasks {
            let run = task.graph_run.and_then(|run| trace.graph_runs.get(run.0 as usize));
            let Some(owner) = self.owner(run.and_then(|run| run.process)) else { continue };
            let name = format!("{} {}", task.what.name(), trace.text(task.name));
            let end_ns = task.start_ns.saturating_add(task.duration_ns);
            let slice = (name.trim_end().to_owned(), task.start_ns, end_ns);
            tasks.entry(owner).or_default().push(slice);
        }
        for (owner, tasks) in tasks {
            self.slices(owner, "host tasks", tasks)?;
        }
        Ok(())
    }

    /// Slices on a track of their own, and on more where they overlap.
    fn slices(&mut self, parent: u64, name: &str, mut slices: Vec<Named>) -> io::Result<()> {
        slices.sort_by_key(|slice| slice.1);
        let mut lanes = Lanes::default();
        let mut tracks = Vec::new();
        for (text, start_ns, end_ns) in slices {
            let lane = lanes.place(start_ns, end_ns);
            if lane as usize == tracks.len() {
                tracks.push(self.track(parent, &lane_name(name, lane))?);
            }
            let track = tracks[lane as usize];
            let text = |it: &mut Message| _ = it.text(event::NAME, &text);
            self.packets.slice(track, (start_ns, end_ns), text)?;
        }
        Ok(())
    }

    /// All ops and copies, on lanes of their backend.
    fn backends(&mut self, tracks: &Tracks, flows: &Flows) -> io::Result<()> {
        let trace = self.trace;
        let mut described: Vec<Option<Message>> = vec![None; trace.nodes.len()];
        for (at, backend) in trace.backends.iter().enumerate() {
            let ids = tracks.order(at);
            let Some(owner) = self.owner(backend.process).filter(|_| !ids.is_empty()) else {
                continue;
            };
            let name = format!("{}: {}", backend.device_type.name(), backend.label());
            let parent = self.track(owner, &name)?;
            // Lanes are numbered from 1.
            let mut lanes = vec![parent];
            for name in tracks.lane_names(at) {
                lanes.push(self.track(parent, &name)?);
            }
            for &id in ids {
                let event = trace.events.get(id);
                let description = described[event.node.0 as usize]
                    .get_or_insert_with(|| self.description(&event));
                self.event(&event, lanes[tracks.tid(&event) as usize], description, flows)?;
            }
        }
        Ok(())
    }

    /// What is the same for every event of a node.
    fn description(&mut self, event: &Event) -> Message {
        let trace = self.trace;
        let signature = trace.signature(event.node);
        let mut message = Message::default();
        let category = match event.kind {
            EventKind::Op => "compute",
            EventKind::Copy => "copy",
        };
        message.number(event::CATEGORY_IIDS, self.packets.intern(Kind::Category, category));
        let name = trace.op_name(event.node);
        message.number(event::NAME_IID, self.packets.intern(Kind::EventName, name));
        let fused = signature.extra.filter(|_| event.is_op());
        for (name, text) in [
            ("tensor", trace.tensor_name(event.node).unwrap_or_default()),
            ("sources", &*shape_text::sources(signature, &trace.types)),
            ("output", &*shape_text::tensor(&signature.output, &trace.types)),
            ("sub_op", signature.sub_op_name.map_or("", |name| trace.text(name))),
            ("fused", fused.map_or("", |name| trace.text(name))),
        ] {
            self.packets.text_annotation(&mut message, name, text);
        }
        message
    }

    fn event(
        &mut self,
        event: &Event,
        track: u64,
        description: &Message,
        flows: &Flows,
    ) -> io::Result<()> {
        let trace = self.trace;
        let mut facts = Message::default();
        let run = event.graph_run.map(|run| trace.run_number(run));
        let charged = Some(event.charged_ns).filter(|&charged| charged != event.duration_ns);
        let fold = trace.events.threads(event.id);
        for (name, value) in [
            ("bytes", Some(event.bytes)),
            ("split", u64::try_from(event.split).ok()),
            ("graph_run", run),
            ("charged_ns", charged),
            ("threads", fold.map(|fold| u64::from(fold.threads))),
            ("thread_busy_sum_ns", fold.map(|fold| fold.busy_sum_ns)),
            ("thread_wait_sum_ns", fold.map(|fold| fold.wait_sum_ns)),
        ] {
            if let Some(value) = value {
                let name = self.packets.intern(Kind::AnnotationName, name);
                number_annotation(&mut facts, name, value);
            }
        }
        self.packets.text_annotation(&mut facts, "measured", event.measured.name());
        self.packets.slice(track, (event.start_ns, event.end_ns()), |it| {
            it.append(description).append(&facts);
            flows.write(event.id, it);
        })
    }

    /// What each thread did, where that was recorded. Threads have numbers of ggml's, which are not the
    /// system's: so they are tracks, and no threads of the system.
    fn threads(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let mut threads: BTreeMap<(u64, u32), Vec<Named>> = BTreeMap::new();
        for share in &trace.events.thread_shares {
            let event = trace.events.get(share.event);
            let Some(owner) = self.owner(trace.backend(event.backend).process) else { continue };
            let end_ns = share.start_ns.saturating_add(share.duration_ns);
            let slice = (trace.op_name(event.node).to_owned(), share.start_ns, end_ns);
            threads.entry((owner, share.thread)).or_default().push(slice);
        }
        for ((owner, number), slices) in threads {
            self.slices(owner, &format!("thread {number}"), slices)?;
        }
        Ok(())
    }

    fn counter(&mut self, of: &Counter) -> io::Result<()> {
        let track = self.next_track;
        self.next_track += 1;
        let parent = self.owner(None).unwrap_or(NOWHERE);
        self.packets.track(track, parent, &of.name, |it| {
            it.with(descriptor::COUNTER, |it| _ = it.text(counter::UNIT_NAME, of.unit));
        })?;
        of.steps.iter().try_for_each(|&(time_ns, value)| {
            let value = |it: &mut Message| _ = it.double(event::DOUBLE_COUNTER_VALUE, value);
            self.packets.event(track, time_ns, event::COUNTER, value)
        })
    }

    /// What is missing: as a count in the statistics, and in words where the trace begins.
    fn losses(&mut self, annotations: &Annotations) -> io::Result<()> {
        let losses = &self.trace.losses;
        let lost = losses.iter().fold(0, |sum: u64, loss| sum.saturating_add(loss.count));
        self.packets.write(|it| {
            it.with(packet::TRACE_STATS, |it| {
                it.with(stats::BUFFER_STATS, |it| {
                    it.number(stats::TRACE_WRITER_PACKET_LOSS, lost);
                });
                it.number(stats::TOTAL_BUFFERS, 1);
            });
        })?;
        if annotations.losses.is_empty() {
            return Ok(());
        }
        let track = self.track(PROCESS, "missing from the recording")?;
        let start_ns = self.start_ns();
        annotations.losses.iter().try_for_each(|sentence| {
            let name = |it: &mut Message| _ = it.text(event::NAME, sentence);
            self.packets.event(track, start_ns, event::INSTANT, name)
        })
    }
}

/// The arrows that lead from copies to what waits for them.
struct Flows {
    from: HashMap<EventId, Vec<u64>>,
    to: HashMap<EventId, Vec<u64>>,
}

impl Flows {
    fn of(annotations: &Annotations) -> Self {
        let mut flows = Self { from: HashMap::new(), to: HashMap::new() };
        for (number, &(copy, op)) in (1..).zip(&annotations.links) {
            flows.from.entry(copy).or_default().push(number);
            flows.to.entry(op).or_default().push(number);
        }
        flows
    }

    fn write(&self, id: EventId, to: &mut Message) {
        let fields = [(event::FLOW_IDS, &self.from), (event::TERMINATING_FLOW_IDS, &self.to)];
        for (field, flows) in fields {
            let flows = flows.get(&id).into_iter().flatten();
            flows.for_each(|&flow| _ = to.fixed64(field, flow));
        }
    }
}
