use super::*;
use crate::model::DeviceType;
use ggprof_spool::layout::{
    BLOCK_BYTES, BLOCK_HEAD_BYTES, BLOCK_MAGIC, DEFINITIONS_LANE, HEADER_BYTES, MAGIC, UNIT,
    VERSION, block_check, header,
};
use std::os::unix::fs::FileExt;

const BLOCKS: u32 = 4;

/// A recording that a program writes.
struct Written {
    file: tempfile::NamedTempFile,
}

impl Written {
    fn new() -> Written {
        let written = Written { file: tempfile::NamedTempFile::new().unwrap() };
        let bytes = HEADER_BYTES + BLOCKS as usize * BLOCK_BYTES;
        written.file.as_file().set_len(bytes as u64).unwrap();
        written.put(0, &MAGIC);
        written.put(header::VERSION, &VERSION.to_le_bytes());
        written.put(header::HEADER_BYTES, &(HEADER_BYTES as u32).to_le_bytes());
        written.put(header::BLOCK_BYTES, &(BLOCK_BYTES as u32).to_le_bytes());
        written.put(header::RESERVED_BLOCKS, &u64::from(BLOCKS).to_le_bytes());
        written
    }

    fn put(&self, at: usize, bytes: &[u8]) {
        self.file.as_file().write_all_at(bytes, at as u64).unwrap();
    }

    /// A block, whatever was in it before.
    fn block(&self, index: u32, (lane, sequence): (u32, u32), records: &[Vec<u8>]) {
        let words = [BLOCK_MAGIC, lane, sequence, index, block_check(lane, sequence, index)];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(BLOCK_HEAD_BYTES, 0);
        bytes.extend(records.iter().flatten());
        bytes.resize(BLOCK_BYTES, 0);
        self.put(HEADER_BYTES + index as usize * BLOCK_BYTES, &bytes);
    }
}

/// Of several units, of which the first says how many.
fn long(fixed: &[u8], tail: &[u8]) -> Vec<u8> {
    let mut record = [fixed, tail].concat();
    record.resize(record.len().next_multiple_of(UNIT), 0);
    let units = (record.len() / UNIT) as u16;
    record[2..4].copy_from_slice(&units.to_le_bytes());
    record
}

fn text(id: u32, text: &str) -> Vec<u8> {
    let head = layout::Text { id, bytes: text.len() as u32, ..Default::default() };
    long(&head.encode(), text.as_bytes())
}

/// What a program describes that always makes new graphs, of which each has one node of another size;
/// the backend lasts.
fn descriptions(number: u32) -> Vec<Vec<u8>> {
    let backend = layout::Backend { backend: 1, name: 1, device: 1, ..Default::default() };
    let member = layout::SchedulerBackend { scheduler: 1, backend: 1, ..Default::default() };
    let ne = [i64::from(number), 1, 1, 1];
    let name = number + 100;
    let node = layout::Node { node: number, op_name: name, ne, ..Default::default() };
    let shape = layout::GraphShape { shape: number, count: 1, ..Default::default() };
    vec![
        text(1, "CPU"),
        backend.encode().to_vec(),
        member.encode().to_vec(),
        text(name, "ADD"),
        long(&node.encode(), &[]),
        long(&shape.encode(), &number.to_le_bytes()),
    ]
}

fn run(number: u32) -> Vec<Vec<u8>> {
    let run = layout::GraphRunBegin { run: number, scheduler: 1, ..Default::default() };
    let (split, shape) = (number, number);
    let begin = layout::SplitBegin { split, run: number, backend: 1, shape, ..Default::default() };
    let op = layout::OpEvent { split, duration: 1, ..Default::default() };
    let end = layout::SplitEnd { split, ops: 1, ..Default::default() };
    let over = layout::GraphRunEnd { run: number, splits: 1, ..Default::default() };
    let records = [run.encode(), begin.encode(), op.encode(), end.encode(), over.encode()];
    records.map(|record| record.to_vec()).to_vec()
}

#[test]
fn descriptions_that_went_are_not_kept() {
    let written = Written::new();
    let mut live = Live::open(written.file.path()).unwrap();
    for number in 1..=50 {
        // In two of the blocks descriptions, in the others what refers to them.
        let (first, second) = (number % 2, 2 + number % 2);
        written.block(first, (DEFINITIONS_LANE, number), &descriptions(number));
        written.block(second, (7, number), &run(number));
        let reused = u64::from(2 * number).saturating_sub(u64::from(BLOCKS));
        written.put(header::REUSED_BLOCKS, &reused.to_le_bytes());
        let news = live.look(0).unwrap();
        assert_eq!(news.is_renumbered, number > 2, "{number}");
        let ops: Vec<_> = news.ops.together().collect();
        let [(_, backend, [(node, _)])] = ops[..] else { panic!("{number}: {ops:?}") };
        let signature = live.descriptions().signature(*node);
        assert_eq!(signature.output.ne[0], i64::from(number));
        assert_eq!(live.descriptions().backend(backend).name, "CPU");
        let tables = &live.tables;
        let kept = [tables.texts.len() - 1, tables.nodes.len(), tables.shapes.len()];
        assert!(kept.iter().all(|kept| *kept <= 2), "{number}: {kept:?}");
        assert!(live.trace.nodes.ids().count() <= 2, "{number}");
        assert_eq!((tables.members.len(), live.trace.backends.len()), (1, 1));
    }
}

/// A call that computes one graph on a backend and returns at 30; the program waits from 40 to 90.
fn call(on: DeviceType) -> [Vec<Vec<u8>>; 4] {
    let device_type = on.to_ggml() as u8;
    let backend = layout::Backend { backend: 1, device_type, ..Default::default() };
    let begin = layout::BatchBegin { call: 5, context: 3, ticks: 10, ..Default::default() };
    let run = layout::GraphRunBegin { run: 1, scheduler: 1, ticks: 10, ..Default::default() };
    let split = layout::SplitBegin { split: 1, run: 1, backend: 1, ..Default::default() };
    let end = layout::SplitEnd { split: 1, ticks: 20, ..Default::default() };
    let over = layout::GraphRunEnd { run: 1, ticks: 20, ..Default::default() };
    let returned = layout::BatchEnd { call: 5, ticks: 30, ..Default::default() };
    let wait = layout::Synchronize { scheduler: 1, start: 40, end: 90, ..Default::default() };
    let next = layout::BatchBegin { call: 6, context: 3, ticks: 100, ..Default::default() };
    let begin = [long(&begin.encode(), &[]), run.encode().to_vec(), split.encode().to_vec()];
    let ends = [end.encode(), over.encode(), returned.encode()];
    [
        [vec![backend.encode().to_vec()], begin.to_vec()].concat(),
        ends.map(|record| record.to_vec()).to_vec(),
        vec![wait.encode().to_vec()],
        vec![long(&next.encode(), &[])],
    ]
}

/// What ends at each look, if the records come in these portions.
#[track_caller]
fn check_ends(portions: &[Vec<Vec<u8>>], expected: &[&[(u32, u64)]]) {
    let written = Written::new();
    let mut live = Live::open(written.file.path()).unwrap();
    let mut records = Vec::new();
    let looks = portions.iter().map(|portion| {
        records.extend(portion.iter().cloned());
        written.block(0, (7, 0), &records);
        live.look(200).unwrap().ended
    });
    assert_eq!(looks.collect::<Vec<_>>(), expected);
}

#[test]
fn what_a_device_computes_is_there_when_the_program_has_waited_for_it() {
    let on_device = call(DeviceType::Gpu);
    check_ends(&on_device, &[&[], &[], &[(5, 90)], &[]]);
    check_ends(&[on_device.concat()], &[&[(5, 90)]]);
    // Nobody waits for the first part of a prompt.
    let [begin, ends, _, next] = on_device;
    check_ends(&[begin.clone(), ends.clone(), next.clone()], &[&[], &[], &[(5, 30)]]);
    // But for the second one.
    let wait = layout::Synchronize { scheduler: 1, start: 110, end: 190, ..Default::default() };
    let wait = vec![wait.encode().to_vec()];
    check_ends(&[[begin, ends, next, wait].concat()], &[&[(5, 30)]]);
    let on_processor = call(DeviceType::Cpu);
    check_ends(&on_processor, &[&[], &[(5, 30)], &[], &[]]);
}
