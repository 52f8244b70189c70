//! Chrome's Trace Event format, which chrome://tracing and Perfetto open.
//!
//! There is one process per backend. Every event keeps the time at which it was recorded, on the
//! recording's clock. Events that overlap get separate lanes, because slices of one lane must nest.
//! Each stream of a device has a lane with the device's work. Graph runs and phases are slices of a
//! separate process, and arrows lead from a copy to the op that waits for it.

use super::lanes::Lanes;
use super::timeline::Annotations;
use crate::model::{Event, EventId, EventKind, Trace, shape_text};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The process with phases and graph runs; those of the backends follow.
const OVERVIEW: usize = 1;
const FIRST_BACKEND: usize = 2;

/// Writes `trace` to `out`, which should be buffered.
pub fn write(trace: &Trace, annotations: &Annotations, out: impl Write) -> io::Result<()> {
    let mut writer = Writer { out, first: true };
    let tracks = Tracks::of(trace);
    writer.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    overview(&mut writer, trace, annotations)?;
    let mut arguments: Vec<Option<String>> = vec![None; trace.nodes.len()];
    for (at, backend) in trace.backends.iter().enumerate() {
        let ids = &tracks.order[at];
        if ids.is_empty() {
            continue;
        }
        let pid = FIRST_BACKEND + at;
        let name = format!("{}: {}", backend.device_type.name(), backend.label());
        writer.process(pid, &name)?;
        tracks.name_lanes(&mut writer, at, pid)?;
        for &id in ids {
            let event = trace.events.get(id);
            let arguments = arguments[event.node.0 as usize]
                .get_or_insert_with(|| node_arguments(trace, &event));
            writer.event(trace, &event, pid, tracks.tid(&event), arguments)?;
        }
        streams(&mut writer, trace, at, pid, tracks.first_free_tid(at))?;
    }
    for (number, &(copy, op)) in annotations.links.iter().enumerate() {
        let ends = [("\"s\"", copy), ("\"f\",\"bp\":\"e\"", op)];
        for (phase, id) in ends {
            let event = trace.events.get(id);
            let pid = FIRST_BACKEND + usize::from(event.backend.0);
            writer.flow(phase, number, pid, tracks.tid(&event), event.start_ns)?;
        }
    }
    writer.out.write_all(b"\n]}\n")
}

/// Phases and graph runs, above everything else.
fn overview(
    writer: &mut Writer<impl Write>,
    trace: &Trace,
    annotations: &Annotations,
) -> io::Result<()> {
    writer.process(OVERVIEW, "phases and graph runs")?;
    let phases =
        annotations.phases.iter().map(|phase| (phase.name.clone(), phase.start_ns, phase.end_ns));
    let runs = trace.graph_runs.iter().enumerate();
    let runs = runs.map(|(at, run)| (format!("graph run {at}"), run.start_ns, run.end_ns));
    let tasks = trace.host_tasks.iter().map(|task| {
        let name = format!("{} {}", task.what.name(), trace.text(task.name));
        (name.trim_end().to_owned(), task.start_ns, task.start_ns.saturating_add(task.duration_ns))
    });
    let next = writer.slices(OVERVIEW, "phases", 1, phases.collect())?;
    let next = writer.slices(OVERVIEW, "graph runs", next, runs.collect())?;
    writer.slices(OVERVIEW, "host tasks", next, tasks.collect())?;
    Ok(())
}

/// What the backend's device did, stream by stream.
fn streams(
    writer: &mut Writer<impl Write>,
    trace: &Trace,
    backend: usize,
    pid: usize,
    mut tid: u32,
) -> io::Result<()> {
    let mut streams: BTreeMap<u32, Vec<(String, u64, u64)>> = BTreeMap::new();
    for work in &trace.device_work {
        if usize::from(trace.events.get(work.event).backend.0) == backend {
            let end_ns = work.start_ns.saturating_add(work.duration_ns);
            let slice = (trace.text(work.name).to_owned(), work.start_ns, end_ns);
            streams.entry(work.stream).or_default().push(slice);
        }
    }
    for (stream, slices) in streams {
        tid = writer.slices(pid, &format!("stream {stream}"), tid, slices)?;
    }
    Ok(())
}

/// Which lane of its backend each event stands in.
pub(super) struct Tracks {
    /// By event: the lane among those of its kind.
    lane: Vec<u32>,
    /// By backend: its events by start.
    order: Vec<Vec<EventId>>,
    /// By backend: lanes of ops and of copies.
    lanes: Vec<[u32; 2]>,
}

impl Tracks {
    pub(super) fn of(trace: &Trace) -> Self {
        let mut order: Vec<Vec<EventId>> = vec![Vec::new(); trace.backends.len()];
        for event in trace.events.iter() {
            order[usize::from(event.backend.0)].push(event.id);
        }
        let mut lane = vec![0; trace.events.len()];
        let mut lanes = Vec::with_capacity(order.len());
        let starts: Vec<u64> = trace.events.starts().collect();
        for ids in &mut order {
            ids.sort_by_key(|id| starts[id.0 as usize]);
            let mut by_kind = [Lanes::default(), Lanes::default()];
            for &id in ids.iter() {
                let event = trace.events.get(id);
                let lanes = &mut by_kind[event.kind as usize];
                lane[id.0 as usize] = lanes.place(event.start_ns, event.end_ns());
            }
            lanes.push(by_kind.map(|lanes| lanes.count()));
        }
        Self { lane, order, lanes }
    }

    /// The events of a backend by start.
    pub(super) fn order(&self, backend: usize) -> &[EventId] {
        &self.order[backend]
    }

    /// Thread number: ops from 1 on, copies after them.
    pub(super) fn tid(&self, event: &Event) -> u32 {
        let before = match event.kind {
            EventKind::Op => 1,
            EventKind::Copy => 1 + self.lanes[usize::from(event.backend.0)][0],
        };
        before + self.lane[event.id.0 as usize]
    }

    fn first_free_tid(&self, backend: usize) -> u32 {
        let [ops, copies] = self.lanes[backend];
        1 + ops + copies
    }

    fn name_lanes(
        &self,
        writer: &mut Writer<impl Write>,
        backend: usize,
        pid: usize,
    ) -> io::Result<()> {
        let names = self.lane_names(backend).into_iter();
        (1..).zip(names).try_for_each(|(tid, name)| writer.thread(pid, tid, &name))
    }

    /// In the order of the thread numbers.
    pub(super) fn lane_names(&self, backend: usize) -> Vec<String> {
        let [ops, copies] = self.lanes[backend];
        let ops = (0..ops).map(|lane| lane_name("ops", lane));
        ops.chain((0..copies).map(|lane| lane_name("copies", lane))).collect()
    }
}

pub(super) fn lane_name(what: &str, lane: u32) -> String {
    if lane == 0 { what.to_owned() } else { format!("{what}, overlapping {}", lane + 1) }
}

/// The arguments that are the same for every event of a node, as JSON members.
fn node_arguments(trace: &Trace, event: &Event) -> String {
    let signature = trace.signature(event.node);
    let mut members = String::new();
    let mut member = |key: &str, text: &str| {
        if !text.is_empty() {
            members.push_str(&format!(",\"{key}\":{}", json_string(text)));
        }
    };
    member("tensor", trace.tensor_name(event.node).unwrap_or_default());
    member("sources", &shape_text::sources(signature, &trace.types));
    member("output", &shape_text::tensor(&signature.output, &trace.types));
    member("sub_op", signature.sub_op_name.map_or("", |name| trace.text(name)));
    if event.is_op() {
        member("fused", signature.extra.map_or("", |name| trace.text(name)));
    }
    members
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

struct Writer<W> {
    out: W,
    first: bool,
}

impl<W: Write> Writer<W> {
    fn next(&mut self) -> io::Result<()> {
        let separator: &[u8] = if self.first { b"\n" } else { b",\n" };
        self.first = false;
        self.out.write_all(separator)
    }

    fn process(&mut self, pid: usize, name: &str) -> io::Result<()> {
        self.next()?;
        let name = json_string(name);
        write!(
            self.out,
            "{{\"ph\":\"M\",\"pid\":{pid},\"name\":\"process_name\",\"args\":{{\"name\":{name}}}}}"
        )?;
        self.next()?;
        write!(
            self.out,
            "{{\"ph\":\"M\",\"pid\":{pid},\"name\":\"process_sort_index\",\"args\":{{\"sort_index\":{pid}}}}}"
        )
    }

    fn thread(&mut self, pid: usize, tid: u32, name: &str) -> io::Result<()> {
        self.next()?;
        let name = json_string(name);
        write!(
            self.out,
            "{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"thread_name\",\"args\":{{\"name\":{name}}}}}"
        )?;
        self.next()?;
        write!(
            self.out,
            "{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{tid}}}}}"
        )
    }

    /// Slices from thread `tid` of a process on; returns the next free thread.
    fn slices(
        &mut self,
        pid: usize,
        what: &str,
        tid: u32,
        mut slices: Vec<(String, u64, u64)>,
    ) -> io::Result<u32> {
        slices.sort_by_key(|slice| slice.1);
        let mut lanes = Lanes::default();
        let mut placed = Vec::with_capacity(slices.len());
        for (name, start_ns, end_ns) in slices {
            placed.push((tid + lanes.place(start_ns, end_ns), name, start_ns, end_ns));
        }
        for lane in 0..lanes.count() {
            self.thread(pid, tid + lane, &lane_name(what, lane))?;
        }
        for (tid, name, start_ns, end_ns) in placed {
            self.start(pid, tid, start_ns, end_ns.saturating_sub(start_ns))?;
            write!(self.out, ",\"name\":{}}}", json_string(&name))?;
        }
        Ok(tid + lanes.count())
    }

    fn event(
        &mut self,
        trace: &Trace,
        event: &Event,
        pid: usize,
        tid: u32,
        arguments: &str,
    ) -> io::Result<()> {
        self.start(pid, tid, event.start_ns, event.duration_ns)?;
        self.out.write_all(b",\"name\":")?;
        serde_json::to_writer(&mut self.out, trace.op_name(event.node))?;
        self.out.write_all(match event.kind {
            EventKind::Op => b",\"cat\":\"compute\",\"args\":{\"bytes\":",
            EventKind::Copy => b",\"cat\":\"copy\",\"args\":{\"bytes\":",
        })?;
        self.number(event.bytes)?;
        self.out.write_all(b",\"split\":")?;
        self.number(event.split)?;
        if let Some(run) = event.graph_run {
            self.out.write_all(b",\"graph_run\":")?;
            self.number(trace.run_number(run))?;
        }
        write!(self.out, ",\"measured\":\"{}\"", event.measured.name())?;
        self.out.write_all(arguments.as_bytes())?;
        self.out.write_all(b"}}")
    }

    /// The beginning of a complete event, up to its duration.
    fn start(&mut self, pid: usize, tid: u32, start_ns: u64, duration_ns: u64) -> io::Result<()> {
        self.next()?;
        self.out.write_all(b"{\"ph\":\"X\",\"pid\":")?;
        self.number(pid)?;
        self.out.write_all(b",\"tid\":")?;
        self.number(tid)?;
        self.out.write_all(b",\"ts\":")?;
        self.microseconds(start_ns)?;
        self.out.write_all(b",\"dur\":")?;
        self.microseconds(duration_ns)
    }

    fn flow(
        &mut self,
        phase: &str,
        id: usize,
        pid: usize,
        tid: u32,
        time_ns: u64,
    ) -> io::Result<()> {
        self.next()?;
        write!(self.out, "{{\"ph\":{phase},\"id\":{id},\"pid\":{pid},\"tid\":{tid},\"ts\":")?;
        self.microseconds(time_ns)?;
        self.out.write_all(b",\"name\":\"copy\",\"cat\":\"copy\"}")
    }

    fn number(&mut self, number: impl itoa::Integer) -> io::Result<()> {
        self.out.write_all(itoa::Buffer::new().format(number).as_bytes())
    }

    /// The format counts in microseconds; three decimals keep every nanosecond.
    fn microseconds(&mut self, ns: u64) -> io::Result<()> {
        self.number(ns / 1000)?;
        let rest = ns % 1000;
        let digits = [
            b'.',
            b'0' + (rest / 100) as u8,
            b'0' + (rest / 10 % 10) as u8,
            b'0' + (rest % 10) as u8,
        ];
        self.out.write_all(&digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::timeline::Slice;
    use crate::text_fixture;
    use expect_test::{Expect, expect};

    fn check(fixture: &str, annotations: &Annotations, expected: Expect) {
        let trace = text_fixture::parse(fixture);
        let mut json = Vec::new();
        write(&trace, annotations, &mut json).unwrap();
        serde_json::from_slice::<serde_json::Value>(&json).expect("valid JSON");
        expected.assert_eq(&String::from_utf8(json).unwrap());
    }

    #[test]
    fn overlapping_events_and_a_link() {
        check(
            "backend -1 CUDA0 gpu
             backend 7 CPU cpu
             op CUDA0 MUL_MAT 2000..5001 Qcur-0 f32[8] <- q4_0[32,8] f32[32] bytes=32
             op CUDA0 ADD 4000..4500 a\"</script>
             op CUDA0 ADD 5001..6000 b fused=ADD+ADD
             copy CUDA0 H2D 1000..2000 128 embd",
            &Annotations {
                phases: vec![Slice { name: "tg1".into(), start_ns: 1000, end_ns: 6000 }],
                links: vec![(EventId(3), EventId(0))],
                ..Annotations::default()
            },
            expect![[r#"
                {"displayTimeUnit":"ns","traceEvents":[
                {"ph":"M","pid":1,"name":"process_name","args":{"name":"phases and graph runs"}},
                {"ph":"M","pid":1,"name":"process_sort_index","args":{"sort_index":1}},
                {"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"phases"}},
                {"ph":"M","pid":1,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}},
                {"ph":"X","pid":1,"tid":1,"ts":1.000,"dur":5.000,"name":"tg1"},
                {"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"graph runs"}},
                {"ph":"M","pid":1,"tid":2,"name":"thread_sort_index","args":{"sort_index":2}},
                {"ph":"X","pid":1,"tid":2,"ts":1.000,"dur":5.000,"name":"graph run 0"},
                {"ph":"M","pid":2,"name":"process_name","args":{"name":"GPU: CUDA0"}},
                {"ph":"M","pid":2,"name":"process_sort_index","args":{"sort_index":2}},
                {"ph":"M","pid":2,"tid":1,"name":"thread_name","args":{"name":"ops"}},
                {"ph":"M","pid":2,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}},
                {"ph":"M","pid":2,"tid":2,"name":"thread_name","args":{"name":"ops, overlapping 2"}},
                {"ph":"M","pid":2,"tid":2,"name":"thread_sort_index","args":{"sort_index":2}},
                {"ph":"M","pid":2,"tid":3,"name":"thread_name","args":{"name":"copies"}},
                {"ph":"M","pid":2,"tid":3,"name":"thread_sort_index","args":{"sort_index":3}},
                {"ph":"X","pid":2,"tid":3,"ts":1.000,"dur":1.000,"name":"copy_H2D","cat":"copy","args":{"bytes":128,"split":0,"graph_run":1,"measured":"unknown","tensor":"embd"}},
                {"ph":"X","pid":2,"tid":1,"ts":2.000,"dur":3.001,"name":"MUL_MAT","cat":"compute","args":{"bytes":32,"split":0,"graph_run":1,"measured":"unknown","tensor":"Qcur-0","sources":"[32, 8] q4_0 x [32] f32","output":"[8] f32"}},
                {"ph":"X","pid":2,"tid":2,"ts":4.000,"dur":0.500,"name":"ADD","cat":"compute","args":{"bytes":0,"split":0,"graph_run":1,"measured":"unknown","tensor":"a\"</script>"}},
                {"ph":"X","pid":2,"tid":1,"ts":5.001,"dur":0.999,"name":"ADD","cat":"compute","args":{"bytes":0,"split":0,"graph_run":1,"measured":"unknown","tensor":"b","fused":"ADD+ADD"}},
                {"ph":"s","id":0,"pid":2,"tid":3,"ts":1.000,"name":"copy","cat":"copy"},
                {"ph":"f","bp":"e","id":0,"pid":2,"tid":1,"ts":2.000,"name":"copy","cat":"copy"}
                ]}
            "#]],
        );
    }
}
