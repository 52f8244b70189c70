//! What devices did, from the recording file into the trace.

use ggprof_spool::layout::{self, BLOCK_BYTES, HEADER_BYTES, NO_NODE, UNIT, header};
use ggprof_trace::{
    EventKind, GraphRunId, LossKind, Measured, TaskKind, Trace, WorkOrigin, formats,
};

/// A recording file of one block, record by record.
struct File {
    header: Vec<u8>,
    block: Vec<u8>,
}

impl File {
    fn new() -> Self {
        let mut header = vec![0; HEADER_BYTES];
        header[..8].copy_from_slice(&layout::MAGIC);
        let mut put = |at: usize, number: u32| {
            header[at..at + 4].copy_from_slice(&number.to_le_bytes());
        };
        put(header::VERSION, layout::VERSION);
        put(header::HEADER_BYTES, HEADER_BYTES as u32);
        put(header::BLOCK_BYTES, BLOCK_BYTES as u32);
        put(header::END_TICKS, 1);
        let head = [layout::BLOCK_MAGIC, 0, 1, 0, layout::block_check(0, 1, 0)];
        let mut block: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
        block.resize(layout::BLOCK_HEAD_BYTES, 0);
        Self { header, block }
    }

    fn put(&mut self, record: &[u8], tail: &[u8]) {
        let start = self.block.len();
        self.block.extend_from_slice(record);
        self.block.extend_from_slice(tail);
        self.block.resize(self.block.len().next_multiple_of(UNIT), 0);
        if record[0] >= layout::FIRST_LONG_KIND {
            let units = ((self.block.len() - start) / UNIT) as u16;
            self.block[start + 2..start + 4].copy_from_slice(&units.to_le_bytes());
        }
    }

    fn text(&mut self, id: u32, text: &str) {
        let head = layout::Text { id, bytes: text.len() as u32, ..Default::default() };
        self.put(&head.encode(), text.as_bytes());
    }

    fn work(&mut self, work: layout::DeviceWork) {
        self.put(&layout::DeviceWork { backend: 1, clock: 1, ..work }.encode(), &[]);
    }

    fn read(mut self) -> Trace {
        self.block.resize(BLOCK_BYTES, 0);
        let bytes = [self.header, self.block].concat();
        formats::spool::read(&bytes[..]).expect("a recording")
    }
}

const MUL_MAT: u32 = 1;
const ADD: u32 = 2;
const KERNEL: u32 = 3;
const PROLOGUE: u32 = 4;

/// One run with one split of two nodes on one device, whose clock counts 2 ns ticks from
/// the host's 1000 on.
fn recording() -> File {
    let mut file = File::new();
    let texts = [(MUL_MAT, "MUL_MAT"), (ADD, "ADD"), (KERNEL, "matvec"), (PROLOGUE, "prologue")];
    for (id, text) in texts {
        file.text(id, text);
    }
    for (node, op_name, ne) in [(1, MUL_MAT, [32, 1, 1, 1]), (2, ADD, [96, 1, 1, 1])] {
        let node = layout::Node { node, op_name, ne, ..Default::default() };
        file.put(&node.encode(), &[]);
    }
    let shape = layout::GraphShape { shape: 1, count: 2, ..Default::default() };
    file.put(&shape.encode(), &[1_u32.to_le_bytes(), 2_u32.to_le_bytes()].concat());
    file.put(&layout::Backend { device_type: 1, backend: 1, ..Default::default() }.encode(), &[]);
    for (device_ticks, monotonic_ns) in [(0, 1000), (1000, 3000)] {
        let uncertainty_ns = 7;
        let sample = layout::DeviceClock {
            clock: 1,
            uncertainty_ns,
            tick_ps: 2000,
            device_ticks,
            monotonic_ns,
            ..Default::default()
        };
        file.put(&sample.encode(), &[]);
    }
    file.put(&layout::GraphRunBegin { run: 1, ticks: 900, ..Default::default() }.encode(), &[]);
    let split = layout::SplitBegin {
        split: 1,
        run: 1,
        backend: 1,
        ticks: 900,
        shape: 1,
        nodes: 2,
        ..Default::default()
    };
    file.put(&split.encode(), &[]);
    file.put(&layout::SplitEnd { split: 1, ticks: 950, ..Default::default() }.encode(), &[]);
    file.put(&layout::GraphRunEnd { run: 1, ticks: 990, ..Default::default() }.encode(), &[]);
    file
}

fn kernel(position: u32, start: u64, end: u64) -> layout::DeviceWork {
    layout::DeviceWork { split: 1, position, name: KERNEL, start, end, ..Default::default() }
}

/// Op, start, duration and clock of each event.
fn events(trace: &Trace) -> Vec<(&str, u64, u64, Measured)> {
    trace
        .events
        .iter()
        .map(|event| {
            let op = trace.op_name(event.node);
            (op, event.start_ns, event.duration_ns, event.measured)
        })
        .collect()
}

#[test]
fn ops_have_the_times_of_their_kernels() {
    let mut file = recording();
    file.work(kernel(0, 10, 20));
    file.work(kernel(0, 30, 40));
    file.work(kernel(1, 40, 45));
    let trace = file.read();
    assert_eq!(
        events(&trace),
        [("MUL_MAT", 1020, 60, Measured::Device), ("ADD", 1080, 10, Measured::Device)]
    );
    let first = trace.events.iter().next().expect("an event").id;
    assert_eq!(trace.work_for(first).len(), 2);
    assert_eq!(trace.text(trace.device_work[2].name), "matvec");
    assert_eq!(trace.provenance.expect("it is ours").device_clock_error_ns, Some(7));
}

/// Charging the time to ops is a question for later; a reader keeps what it takes.
#[test]
fn work_keeps_what_says_how_it_ran() {
    let mut file = recording();
    let flags = layout::WORK_CONCURRENT;
    file.work(layout::DeviceWork { flags, group: 5, ..kernel(0, 0, 100) });
    file.work(layout::DeviceWork { flags, group: 5, ..kernel(1, 0, 100) });
    file.work(kernel(NO_NODE, 100, 110));
    let trace = file.read();
    assert_eq!(
        events(&trace),
        [
            ("MUL_MAT", 1000, 200, Measured::Device),
            ("ADD", 1000, 200, Measured::Device),
            ("unattributed", 1200, 20, Measured::Device)
        ]
    );
    let concurrent: Vec<bool> = trace.device_work.iter().map(|work| work.concurrent).collect();
    assert_eq!(concurrent, [true, true, false]);
    let origin = |position, group| WorkOrigin { backend: 1, split: 1, position, group };
    let together = Some((1, 5));
    assert_eq!(
        trace.work_origins,
        [origin(Some(0), together), origin(Some(1), together), origin(None, None)]
    );
}

/// Inside the call, behind it, and once more; a second scheduler's is not this run's.
#[test]
fn a_run_of_a_device_is_waited_for_once_behind_its_call() {
    let mut file = recording();
    for position in [0, 1] {
        let flags = layout::WORK_CONCURRENT;
        file.work(layout::DeviceWork { flags, group: 1, ..kernel(position, 0, 100) });
    }
    for (scheduler, start, end) in [(0, 1300, 1310), (0, 1000, 1200), (0, 910, 920), (7, 995, 999)]
    {
        let wait = layout::Synchronize { scheduler, start, end, ..Default::default() };
        file.put(&wait.encode(), &[]);
    }
    let waits = file.read().host_tasks;
    assert!(waits.iter().all(|wait| wait.what == TaskKind::Wait));
    assert!(waits.iter().all(|wait| wait.graph_run == Some(GraphRunId(0))));
    let times: Vec<_> = waits.iter().map(|wait| (wait.start_ns, wait.duration_ns)).collect();
    assert_eq!(times, [(910, 10), (1000, 200)]);
}

#[test]
fn work_of_no_node_has_a_name_of_its_own() {
    let mut file = recording();
    let fill = layout::WORK_FILL;
    file.work(layout::DeviceWork { flags: fill, name: PROLOGUE, ..kernel(NO_NODE, 0, 1) });
    file.work(kernel(NO_NODE, 5, 6));
    let flags = layout::WORK_COPY | layout::COPY_DEVICE_TO_HOST << layout::WORK_DIRECTION_BIT;
    file.work(layout::DeviceWork { flags, bytes: 64, ..kernel(NO_NODE, 7, 8) });
    let trace = file.read();
    let names: Vec<&str> = events(&trace).iter().map(|event| event.0).collect();
    assert_eq!(names, ["SPLIT", "prologue", "unattributed", "copy_D2H"]);
    let copy = trace.events.iter().last().expect("four events");
    assert_eq!((copy.kind, copy.bytes), (EventKind::Copy, 64));
}

#[test]
fn a_whole_split_by_the_devices_clock() {
    let mut file = recording();
    let flags = layout::WORK_WHOLE_SPLIT;
    file.work(layout::DeviceWork { flags, ..kernel(NO_NODE, 0, 50) });
    assert_eq!(events(&file.read()), [("SPLIT", 1000, 100, Measured::Device)]);
}

/// Ops of a processor that only ticks may be unknown; the time that the split took is not.
#[test]
fn a_split_of_ops_that_cannot_be_told_apart_has_its_time() {
    use layout::{Covered, CoveredHow};
    for (device_type, how, expected) in [
        (0, CoveredHow::AbortCallback, vec![("SPLIT", 900, 50, Measured::Host)]),
        (0, CoveredHow::Not, vec![("SPLIT", 900, 50, Measured::Host)]),
        (1, CoveredHow::Not, vec![("SPLIT", 900, 50, Measured::HostCall)]),
        (0, CoveredHow::GotSlot, vec![]),
    ] {
        let mut file = recording();
        let backend = layout::Backend { device_type, backend: 1, ..Default::default() };
        file.put(&backend.encode(), &[]);
        file.put(&covered(Covered::Ops, how), &[]);
        assert_eq!(events(&file.read()), expected, "{device_type} {how:?}");
    }
}

#[test]
fn work_without_times_is_a_loss() {
    let mut file = recording();
    file.work(kernel(0, 0, 10));
    file.work(layout::DeviceWork { flags: layout::WORK_UNTIMED, ..kernel(1, 0, 0) });
    file.work(kernel(1, 20, 10));
    let trace = file.read();
    assert_eq!(events(&trace).len(), 1);
    let untimed = trace.losses.iter().find(|loss| loss.kind == LossKind::Untimed);
    assert_eq!(untimed.map(|loss| loss.count), Some(2));
}

#[test]
fn a_copy_is_timed_by_the_device_that_carried_it_out() {
    let mut file = recording();
    let copy = layout::CopyEvent {
        flags: layout::COPY_HOST_TO_DEVICE | layout::COPY_ASYNC,
        run: 1,
        target_backend: 1,
        bytes: 128,
        start: 800,
        end: 810,
        ..Default::default()
    };
    file.put(&copy.encode(), &[]);
    let flags = layout::WORK_COPY;
    file.work(layout::DeviceWork { flags, cause: 800, split: 0, ..kernel(NO_NODE, 0, 9) });
    let trace = file.read();
    assert_eq!(events(&trace)[1], ("copy_H2D", 1000, 18, Measured::Device));
}

/// A word about the coverage of the recording's backend.
fn covered(what: layout::Covered, how: layout::CoveredHow) -> [u8; UNIT] {
    let (what, how) = (what as u16, how as u8);
    layout::Coverage { how, what, backend: 1, ..Default::default() }.encode()
}

fn ways(trace: &Trace) -> Vec<(layout::Covered, layout::CoveredHow)> {
    trace.coverage.iter().map(|entry| (entry.what, entry.how)).collect()
}

#[test]
fn of_coverage_the_last_word_holds() {
    use layout::{Covered, CoveredHow};
    let mut file = recording();
    file.put(&covered(Covered::Ops, CoveredHow::Not), &[]);
    file.put(&covered(Covered::Kernels, CoveredHow::DeviceTimestamps), &[]);
    file.put(&covered(Covered::Ops, CoveredHow::DeviceTimestamps), &[]);
    let how = CoveredHow::DeviceTimestamps;
    assert_eq!(ways(&file.read()), [(Covered::Ops, how), (Covered::Kernels, how)]);
}

/// Later agents say themselves that kernels show the ops of their device.
#[test]
fn before_version_7_ops_that_no_call_announces_are_seen_by_their_kernels() {
    use layout::{Covered, CoveredHow};
    for (version, of_ops) in [(6_u32, CoveredHow::DeviceTimestamps), (7, CoveredHow::Not)] {
        let mut file = recording();
        file.header[header::VERSION..][..4].copy_from_slice(&version.to_le_bytes());
        file.put(&covered(Covered::Ops, CoveredHow::Not), &[]);
        file.put(&covered(Covered::Kernels, CoveredHow::DeviceTimestamps), &[]);
        assert_eq!(ways(&file.read())[0], (Covered::Ops, of_ops), "version {version}");
    }
}

/// Agents told reasons by text alone until version 3 of the format.
#[test]
fn a_reason_that_is_a_text_alone_is_kept_to_be_shown() {
    let mut file = recording();
    file.text(77, "the driver said so");
    let kernels = layout::Covered::Kernels as u16;
    let text = layout::Coverage { what: kernels, backend: 1, detail: 77, ..Default::default() };
    file.put(&text.encode(), &[]);
    let why = layout::CoveredWhy::DeviceLost;
    let ops = layout::Covered::Ops as u16;
    let numbered = layout::Coverage { what: ops, why: why as u32, detail: 0, ..text };
    file.put(&numbered.encode(), &[]);
    let trace = file.read();
    let told: Vec<_> = trace.coverage.iter().map(|entry| (entry.why, &*entry.detail)).collect();
    assert_eq!(told, [(layout::CoveredWhy::Untold, "the driver said so"), (why, "")]);
}

#[test]
fn coverage_of_nobody_knows_what_is_damage() {
    let mut file = recording();
    file.put(&layout::Coverage { what: 999, backend: 1, ..Default::default() }.encode(), &[]);
    let trace = file.read();
    assert_eq!((trace.coverage.len(), trace.losses[0].kind), (0, LossKind::DamagedRecord));
}
