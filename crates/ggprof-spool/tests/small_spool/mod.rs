//! A small recording with one record of every kind, made by the real writer.

use ggprof_spool::layout::{self, BLOCK_BYTES, HEADER_BYTES};
use ggprof_spool::writer::{BlockWriter, HeaderFacts, HeaderPage};

pub(crate) const BLOCKS: usize = 2;

/// Memory aligned as a mapped file is.
#[repr(C, align(4096))]
struct Pages([u8; HEADER_BYTES + BLOCKS * BLOCK_BYTES]);

pub(crate) fn bytes() -> Vec<u8> {
    let mut pages = Box::new(Pages([0; HEADER_BYTES + BLOCKS * BLOCK_BYTES]));
    let base = pages.0.as_mut_ptr();
    let facts = HeaderFacts {
        clock: layout::ClockKind::CycleCounter,
        pid: 4711,
        options: layout::OPTION_THREADS,
        start_ticks: 1_000,
        start_monotonic_ns: 2_000,
        start_realtime_ns: 3_000,
        command: b"llama-bench",
        cpu_name: b"A Processor",
        agent_version: b"0.1.0",
    };
    // SAFETY: the pages are zeroed, aligned, and outlive both writers.
    unsafe {
        let header = HeaderPage::create(base, &facts);
        header.set_reserved_blocks(BLOCKS as u64);
        header.count_loss(layout::LossCounter::NoLane, 3);
        header.set_end(9_000);
        let mut first = BlockWriter::without_block();
        first.start(base.add(HEADER_BYTES), 0, 1, 0);
        fill(&mut first);
        let mut second = BlockWriter::without_block();
        second.start(base.add(HEADER_BYTES + BLOCK_BYTES), 1, 1, 1);
        let end = layout::GraphRunEnd { run: 8, status: -1, ticks: 8_000, ..Default::default() };
        second.put(&end.encode()).expect("the block is empty");
    }
    pages.0.to_vec()
}

fn fill(writer: &mut BlockWriter) {
    let mut long = |fixed: &mut [u8], tail: &[u8]| {
        writer.put_long(fixed, tail).expect("the block has room");
    };
    for (id, text) in [(1, "MUL_MAT"), (2, "Qcur-0"), (3, "grün")] {
        let head = layout::Text { id, bytes: text.len() as u32, ..Default::default() };
        long(&mut head.encode(), text.as_bytes());
    }
    let node = layout::Node {
        sources: 2,
        node: 1,
        instance: 1,
        op: 29,
        op_name: 1,
        name: 2,
        ne: [256, 5, 1, 1],
        nb: [4, 1024, 5120, 5120],
        op_params: [7; 16],
        ..Default::default()
    };
    let source = layout::Source { name: 3, nodes_back: 2, ne: [256; 4], ..Default::default() };
    let other = layout::Source { slot: 1, ..source };
    long(&mut node.encode(), &[source.encode(), other.encode()].concat());
    let shape = layout::GraphShape { shape: 1, count: 3, ..Default::default() };
    let nodes: Vec<u8> = [1_u32, 1, 1].iter().flat_map(|n| n.to_le_bytes()).collect();
    long(&mut shape.encode(), &nodes);
    let fusion = layout::Fusion { shape: 1, position: 1, count: 2, ..Default::default() };
    let members: Vec<u8> = [1_u32, 2].iter().flat_map(|n| n.to_le_bytes()).collect();
    long(&mut fusion.encode(), &members);
    let copy = layout::CopyEvent { flags: 1, run: 7, bytes: 1 << 33, ..Default::default() };
    long(&mut copy.encode(), &[]);
    let work = layout::DeviceWork { split: 1, position: 2, name: 1, end: 9, ..Default::default() };
    long(&mut work.encode(), &[]);
    let placement =
        layout::Placement { node: 1, backend: 1, sources: 2, answers: 1, ..Default::default() };
    let answer = layout::Answer { backend: 2, says: layout::ANSWER_SUPPORTS };
    let tail = [&1_u32.to_le_bytes()[..], &0_u32.to_le_bytes(), &answer.encode()].concat();
    long(&mut placement.encode(), &tail);
    let chosen = layout::ExpertUse { split: 1, experts: 8, count: 1, ..Default::default() };
    long(&mut chosen.encode(), &layout::ExpertCount { expert: 7, uses: 2 }.encode());
    let batch = layout::BatchBegin { call: 3, tokens: 5, sequences: 2, ..Default::default() };
    let sequence = layout::BatchSequence { sequence: 1, first: 7, last: 9, tokens: 3, outputs: 1 };
    let without = layout::BatchSequence { sequence: 2, first: -1, last: -1, tokens: 2, outputs: 0 };
    long(&mut batch.encode(), &[sequence.encode(), without.encode()].concat());
    let buffer = layout::Buffer { buffer: 1, bytes: 1 << 20, name_bytes: 8, ..Default::default() };
    long(&mut buffer.encode(), b"cache_k0");
    let sensor =
        layout::Sensor { quantity: 3, sensor: 1, name_bytes: 4, every_ns: 9, ..Default::default() };
    long(&mut sensor.encode(), b"H200");
    let machine = layout::Machine { what: 1, text_bytes: 7, ..Default::default() };
    long(&mut machine.encode(), b"Linux 6");
    let transfer =
        layout::Transfer { connection: 1, bytes: 40, ports: 7 << 16 | 9, ..Default::default() };
    long(&mut transfer.encode(), &[]);
    let memory =
        layout::DeviceMemory { device: 1, free: 5, total: 9, at_ns: 2, ..Default::default() };
    long(&mut memory.encode(), &[]);
    for record in short_records() {
        writer.put(&record).expect("the block has room");
    }
}

fn short_records() -> Vec<[u8; 32]> {
    let measured = layout::MEASURED_HOST | layout::OP_FUSED | 4 << layout::OP_SHIFT_BIT;
    vec![
        layout::Instance { instance: 1, library: 2, ..Default::default() }.encode(),
        layout::TypeEntry { instance: 1, type_id: 8, name: 3, ..Default::default() }.encode(),
        layout::Backend { device_type: 1, backend: 1, name: 3, ..Default::default() }.encode(),
        layout::Coverage { how: 2, what: 2, backend: 1, why: 23, detail: 3, ..Default::default() }
            .encode(),
        layout::SchedulerBackend { scheduler: 1, backend: 1, ..Default::default() }.encode(),
        layout::ClockSample { ticks: 1_000, monotonic_ns: 2_000, ..Default::default() }.encode(),
        layout::GraphRunBegin { run: 7, scheduler: 1, ticks: 5_000, ..Default::default() }.encode(),
        layout::SplitBegin {
            split: 1,
            run: 7,
            backend: 1,
            shape: 1,
            nodes: 3,
            ..Default::default()
        }
        .encode(),
        layout::OpEvent {
            flags: measured,
            threads: 2,
            split: 1,
            duration: 3,
            ..Default::default()
        }
        .encode(),
        layout::ThreadShare { thread: 1, split: 1, duration: 48, ..Default::default() }.encode(),
        layout::SplitEnd { split: 1, ops: 1, agent_ticks: 11, ..Default::default() }.encode(),
        layout::GraphRunEnd { run: 7, splits: 1, ticks: 6_000, ..Default::default() }.encode(),
        layout::Synchronize { scheduler: 1, start: 1, end: 2, ..Default::default() }.encode(),
        layout::DeviceClock { clock: 1, device_ticks: 5, ..Default::default() }.encode(),
        layout::BatchEnd { call: 3, ticks: 7, ..Default::default() }.encode(),
        layout::ContextChange { what: 1, sequence: -1, last: -1, ticks: 8, ..Default::default() }
            .encode(),
        layout::Driver { backend: 1, version: 3, ..Default::default() }.encode(),
        layout::Sample { sensor: 1, value: 7, monotonic_ns: 2_100, ..Default::default() }.encode(),
        layout::MemoryKind { usage: 1, memory: 1, type_name: 3, ..Default::default() }.encode(),
        layout::HostTask { split: 1, name: 1, start: 3, end: 4, ..Default::default() }.encode(),
    ]
}
