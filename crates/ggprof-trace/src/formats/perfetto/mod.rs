//! Perfetto's own format, for ui.perfetto.dev and its trace processor.
//!
//! Each backend has a track, with lanes for its ops and copies below it; phases and graph runs have
//! their tracks above. Kernels of devices are stages of a GPU, on the queue they ran on, and counters
//! hold clocks, power and memory. All times are those of the recording's clock; what that was by the
//! time of day is said where it is known. What is missing from the recording is in the statistics of
//! the trace, so that Perfetto warns of it.
//!
//! Packets are written one by one. Names are described in the first packet that needs them.

mod device;
mod numbers;
mod packets;
#[cfg(test)]
mod tests;

use super::chrome::{Tracks, lane_name};
use super::lanes::Lanes;
use super::protobuf::Message;
use super::timeline::{Annotations, Counter};
use crate::model::{Event, EventId, EventKind, Trace, shape_text};
use hashbrown::HashMap;
use numbers::{counter, descriptor, event, packet, process, stats};
use packets::{Kind, Packets, number_annotation};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The process, below which all others are.
const PROCESS: u64 = 1;

/// Writes `trace` to `out`, which should be buffered.
pub fn write(trace: &Trace, annotations: &Annotations, out: impl Write) -> io::Result<()> {
    let mut writer = Writer { packets: Packets::new(out), next_track: PROCESS + 1 };
    writer.clocks(trace)?;
    writer.process(trace)?;
    writer.overview(trace, annotations)?;
    writer.backends(trace, annotations)?;
    writer.threads(trace)?;
    device::stages(trace, pid_of(trace), &mut writer.packets)?;
    annotations.counters.iter().try_for_each(|counter| writer.counter(counter))?;
    writer.losses(trace, annotations)
}

/// 0 is no process of a user.
fn pid_of(trace: &Trace) -> Option<u64> {
    trace.provenance.as_ref().map(|facts| u64::from(facts.pid)).filter(|&pid| pid > 0)
}

struct Writer<W> {
    packets: Packets<W>,
    next_track: u64,
}

/// A slice of which nothing but its name is known.
type Named = (String, u64, u64);

impl<W: Write> Writer<W> {
    fn clocks(&mut self, trace: &Trace) -> io::Result<()> {
        let anchors = trace.provenance.as_ref().map_or(&[][..], |facts| &facts.clock_anchors);
        if anchors.is_empty() {
            let start_ns = trace.span_ns().map_or(0, |(start_ns, _)| start_ns);
            return self.packets.clocks(start_ns, None);
        }
        anchors.iter().try_for_each(|&(at_ns, unix_ns)| self.packets.clocks(at_ns, Some(unix_ns)))
    }

    fn process(&mut self, trace: &Trace) -> io::Result<()> {
        let name = trace.provenance.as_ref().map_or(&*trace.writer, |facts| &facts.command);
        let Some(pid) = pid_of(trace) else {
            return self.packets.track(PROCESS, 0, name, |_| ());
        };
        self.packets.track(PROCESS, 0, "", |it| {
            it.with(descriptor::PROCESS, |it| {
                it.number(process::PID, pid).text(process::NAME, name);
            });
        })
    }

    /// A new track below another.
    fn track(&mut self, parent: u64, name: &str) -> io::Result<u64> {
        let uuid = self.next_track;
        self.next_track += 1;
        self.packets.track(uuid, parent, name, |_| ())?;
        Ok(uuid)
    }

    /// Phases, graph runs and what the host did, above everything else.
    fn overview(&mut self, trace: &Trace, annotations: &Annotations) -> io::Result<()> {
        let phases = annotations.phases.iter();
        let phases = phases.map(|phase| (phase.name.clone(), phase.start_ns, phase.end_ns));
        let runs = trace.graph_runs.iter().enumerate();
        let runs = runs.map(|(at, run)| (format!("graph run {at}"), run.start_ns, run.end_ns));
        let tasks = trace.host_tasks.iter().map(|task| {
            let name = format!("{} {}", task.what.name(), trace.text(task.name));
            let end_ns = task.start_ns.saturating_add(task.duration_ns);
            (name.trim_end().to_owned(), task.start_ns, end_ns)
        });
        self.slices("phases", phases.collect())?;
        self.slices("graph runs", runs.collect())?;
        self.slices("host tasks", tasks.collect())
    }

    /// Slices on a track of their own, and on more where they overlap.
    fn slices(&mut self, name: &str, mut slices: Vec<Named>) -> io::Result<()> {
        slices.sort_by_key(|slice| slice.1);
        let mut lanes = Lanes::default();
        let mut tracks = Vec::new();
        for (text, start_ns, end_ns) in slices {
            let lane = lanes.place(start_ns, end_ns);
            if lane as usize == tracks.len() {
                tracks.push(self.track(PROCESS, &lane_name(name, lane))?);
            }
            let track = tracks[lane as usize];
            let text = |it: &mut Message| _ = it.text(event::NAME, &text);
            self.packets.slice(track, (start_ns, end_ns), text)?;
        }
        Ok(())
    }

    /// All ops and copies, on lanes of their backend.
    fn backends(&mut self, trace: &Trace, annotations: &Annotations) -> io::Result<()> {
        let tracks = Tracks::of(trace);
        let flows = Flows::of(annotations);
        let mut described: Vec<Option<Message>> = vec![None; trace.nodes.len()];
        for (at, backend) in trace.backends.iter().enumerate() {
            let ids = tracks.order(at);
            if ids.is_empty() {
                continue;
            }
            let name = format!("{}: {}", backend.device_type.name(), backend.label());
            let parent = self.track(PROCESS, &name)?;
            // Lanes are numbered from 1.
            let mut lanes = vec![parent];
            for name in tracks.lane_names(at) {
                lanes.push(self.track(parent, &name)?);
            }
            for &id in ids {
                let event = trace.events.get(id);
                let description = described[event.node.0 as usize]
                    .get_or_insert_with(|| self.description(trace, &event));
                self.event(trace, &event, lanes[tracks.tid(&event) as usize], description, &flows)?;
            }
        }
        Ok(())
    }

    /// What is the same for every event of a node.
    fn description(&mut self, trace: &Trace, event: &Event) -> Message {
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
        trace: &Trace,
        event: &Event,
        track: u64,
        description: &Message,
        flows: &Flows,
    ) -> io::Result<()> {
        let mut facts = Message::default();
        let run = event.graph_run.map(|run| u64::from(run.0));
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
    fn threads(&mut self, trace: &Trace) -> io::Result<()> {
        let mut threads: BTreeMap<u32, Vec<Named>> = BTreeMap::new();
        for share in &trace.events.thread_shares {
            let name = trace.op_name(trace.events.get(share.event).node).to_owned();
            let end_ns = share.start_ns.saturating_add(share.duration_ns);
            threads.entry(share.thread).or_default().push((name, share.start_ns, end_ns));
        }
        for (number, slices) in threads {
            self.slices(&format!("thread {number}"), slices)?;
        }
        Ok(())
    }

    fn counter(&mut self, of: &Counter) -> io::Result<()> {
        let track = self.next_track;
        self.next_track += 1;
        self.packets.track(track, PROCESS, &of.name, |it| {
            it.with(descriptor::COUNTER, |it| _ = it.text(counter::UNIT_NAME, of.unit));
        })?;
        of.steps.iter().try_for_each(|&(time_ns, value)| {
            let value = |it: &mut Message| _ = it.double(event::DOUBLE_COUNTER_VALUE, value);
            self.packets.event(track, time_ns, event::COUNTER, value)
        })
    }

    /// What is missing: as a count in the statistics, and in words where the trace begins.
    fn losses(&mut self, trace: &Trace, annotations: &Annotations) -> io::Result<()> {
        let lost = trace.losses.iter().fold(0, |sum: u64, loss| sum.saturating_add(loss.count));
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
        let start_ns = trace.span_ns().map_or(0, |(start_ns, _)| start_ns);
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
