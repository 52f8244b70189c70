//! A recording is followed while it is written: each record is seen once.

use std::fs::File;
use std::os::unix::fs::FileExt;

use ggprof_spool::follow::{Follower, New};
use ggprof_spool::layout::{
    BLOCK_BYTES, BLOCK_HEAD_BYTES, BLOCK_MAGIC, DEFINITIONS_LANE, FREE_BLOCK_MAGIC, GraphRunBegin,
    HEADER_BYTES, MAGIC, OpEvent, UNIT, VERSION, block_check, header,
};
use ggprof_spool::live::LiveSpool;
use ggprof_spool::record::{Op, Record};

struct Written {
    file: tempfile::NamedTempFile,
}

impl Written {
    fn new() -> Written {
        let file = tempfile::NamedTempFile::new().unwrap();
        let written = Written { file };
        written.file().set_len((HEADER_BYTES + 4 * BLOCK_BYTES) as u64).unwrap();
        written.put(0, &MAGIC);
        written.put(header::VERSION, &VERSION.to_le_bytes());
        written.put(header::HEADER_BYTES, &(HEADER_BYTES as u32).to_le_bytes());
        written.put(header::BLOCK_BYTES, &(BLOCK_BYTES as u32).to_le_bytes());
        written.put(header::RESERVED_BLOCKS, &4u64.to_le_bytes());
        written
    }

    fn file(&self) -> &File {
        self.file.as_file()
    }

    fn put(&self, at: usize, bytes: &[u8]) {
        self.file().write_all_at(bytes, at as u64).unwrap();
    }

    fn head(&self, index: u32, lane: u32, sequence: u32) {
        let words = [BLOCK_MAGIC, lane, sequence, index, block_check(lane, sequence, index)];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(HEADER_BYTES + index as usize * BLOCK_BYTES, &bytes);
    }

    fn run(&self, index: usize, place: usize, run: u32) {
        let at = HEADER_BYTES + index * BLOCK_BYTES + BLOCK_HEAD_BYTES + place * UNIT;
        self.put(at, &GraphRunBegin { run, ..Default::default() }.encode());
    }
}

#[track_caller]
fn check(follower: &mut Follower, spool: &LiveSpool, expected: &[u32]) {
    let mut runs = Vec::new();
    let take = |new: New<'_>, _| match new {
        New::Record(Record::GraphRunBegin(begin)) => runs.push(begin.run),
        other => panic!("{other:?}"),
    };
    follower.look(spool, take).unwrap();
    assert_eq!(runs, expected);
}

#[test]
fn every_record_is_seen_once() {
    let written = Written::new();
    let spool = LiveSpool::open(written.file.path()).unwrap();
    let mut follower = Follower::default();
    written.head(0, 7, 0);
    written.run(0, 0, 1);
    check(&mut follower, &spool, &[1]);
    check(&mut follower, &spool, &[]);
    // More in the same block, and the lane goes on in another.
    written.run(0, 1, 2);
    written.head(2, 7, 1);
    written.run(2, 0, 3);
    check(&mut follower, &spool, &[2, 3]);
    // A block that is full is not looked at again; another lane appears.
    written.head(1, 8, 0);
    written.run(1, 0, 4);
    written.run(2, 1, 5);
    check(&mut follower, &spool, &[5, 4]);
    assert_eq!((follower.missed_blocks(), follower.is_partial()), (0, false));
}

#[test]
fn blocks_that_are_used_again_are_new() {
    let written = Written::new();
    let spool = LiveSpool::open(written.file.path()).unwrap();
    let mut follower = Follower::default();
    written.head(0, 7, 0);
    written.run(0, 0, 1);
    written.head(1, 7, 1);
    check(&mut follower, &spool, &[1]);
    written.put(HEADER_BYTES, &FREE_BLOCK_MAGIC.to_le_bytes());
    written.put(header::REUSED_BLOCKS, &1u64.to_le_bytes());
    check(&mut follower, &spool, &[]);
    // Two blocks further on: one in between was gone before it was met.
    written.head(0, 7, 3);
    written.run(0, 0, 9);
    check(&mut follower, &spool, &[9]);
    assert_eq!(follower.missed_blocks(), 1);
}

/// The block that was used again is the one that a lane's next block is in, wherever that stands.
#[test]
fn all_blocks_are_looked_at_where_one_is_missing() {
    let written = Written::new();
    let spool = LiveSpool::open(written.file.path()).unwrap();
    let mut follower = Follower::default();
    (0..3).for_each(|index| written.head(index, 7, index));
    written.head(3, 8, 0);
    check(&mut follower, &spool, &[]);
    // Two are used again, of which only one is counted yet.
    written.head(0, 7, 4);
    written.run(0, 0, 4);
    written.head(3, 7, 3);
    written.run(3, 0, 3);
    written.put(header::REUSED_BLOCKS, &1u64.to_le_bytes());
    check(&mut follower, &spool, &[3, 4]);
    assert_eq!(follower.missed_blocks(), 0);
}

#[test]
fn descriptions_that_went_are_told() {
    let written = Written::new();
    let spool = LiveSpool::open(written.file.path()).unwrap();
    let mut follower = Follower::default();
    written.head(0, DEFINITIONS_LANE, 1);
    written.run(0, 0, 1);
    written.head(1, DEFINITIONS_LANE, 2);
    written.run(1, 0, 2);
    written.head(2, 7, 0);
    written.run(2, 0, 3);
    let mut places = Vec::new();
    follower.look(&spool, |_, place| places.push(place)).unwrap();
    assert_eq!(places, [Some(1), Some(2), None]);
    assert_eq!(follower.take_gone(), []);
    written.head(0, 7, 1);
    written.run(0, 0, 4);
    written.put(header::REUSED_BLOCKS, &1u64.to_le_bytes());
    check(&mut follower, &spool, &[4]);
    assert_eq!(follower.take_gone(), [1]);
    assert_eq!(follower.take_gone(), []);
}

#[test]
fn ops_come_together_before_all_else() {
    let written = Written::new();
    let spool = LiveSpool::open(written.file.path()).unwrap();
    written.head(0, 7, 0);
    let put = |place: usize, record: &[u8]| {
        written.put(HEADER_BYTES + BLOCK_HEAD_BYTES + place * UNIT, record);
    };
    let op = |position| OpEvent { split: 1, position, ..Default::default() }.encode();
    put(0, &op(5));
    put(1, &op(6));
    written.run(0, 2, 1);
    put(3, &op(7));
    let mut found = Vec::new();
    let take = |new: New<'_>, _| match new {
        New::Ops(bytes) => {
            let ops = bytes.chunks(UNIT).map(|bytes| Op::decode(bytes).unwrap().position);
            found.push(ops.collect::<Vec<_>>());
        }
        New::Record(_) => found.push(Vec::new()),
    };
    Follower::default().look(&spool, take).unwrap();
    assert_eq!(found, [vec![5, 6], vec![7], vec![]]);
}
