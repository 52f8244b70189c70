//! Blocks that are used again: at no moment does one look whole with old and new records mixed,
//! and records come in the order of each lane, wherever its blocks stand.

mod small_spool;

use ggprof_spool::layout::{self, BLOCK_BYTES, BLOCK_HEAD_BYTES, HEADER_BYTES, header};
use ggprof_spool::live::LiveSpool;
use ggprof_spool::writer::{self, BlockWriter};
use ggprof_spool::{Record, Spool};

#[repr(C, align(4096))]
struct Block([u8; BLOCK_BYTES]);

/// A block of lane 3 full of runs from `first` on.
fn filled(first: u32, sequence: u32, index: u32) -> Box<Block> {
    let mut block = Box::new(Block([0; BLOCK_BYTES]));
    let mut writer = BlockWriter::without_block();
    // SAFETY: zeroed, aligned, and it outlives the writer.
    unsafe { writer.start(block.0.as_mut_ptr(), 3, sequence, index) };
    let mut run = first;
    while writer.put(&layout::GraphRunBegin { run, ..Default::default() }.encode()).is_ok() {
        run += 1;
    }
    block
}

/// A recording of these blocks.
fn file(blocks: &[&Block]) -> Vec<u8> {
    let mut bytes = small_spool::bytes()[..HEADER_BYTES].to_vec();
    let count = blocks.len() as u64;
    for (at, value) in [(header::RESERVED_BLOCKS, count), (header::REUSED_BLOCKS, 1)] {
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    for block in blocks {
        bytes.extend(&block.0);
    }
    bytes
}

fn runs(bytes: &[u8]) -> Vec<u32> {
    let spool = Spool::open(bytes).expect("a recording");
    let records = spool.records().map(|record| match record.expect("no damage") {
        Record::GraphRunBegin(begin) => begin.run,
        other => panic!("{other:?}"),
    });
    records.collect()
}

#[test]
fn at_every_moment_a_block_is_the_old_or_nothing_or_the_new() {
    let other = filled(1_000_000, 9, 0);
    let per_block = runs(&file(&[&other])).len();
    let mut block = filled(1, 1, 1);
    let count = |block: &Block| runs(&file(&[&other, block])).len() - per_block;
    assert_eq!(count(&block), per_block);
    // SAFETY: no writer has the block.
    unsafe { writer::invalidate(block.0.as_mut_ptr()) };
    assert_eq!(count(&block), 0);
    // The kill may come anywhere in between, from the front or from the back.
    for end in (4..BLOCK_BYTES).step_by(997) {
        let mut cut = Block(block.0);
        cut.0[4..end].fill(0);
        assert_eq!(count(&cut), 0, "{end}");
        let mut cut = Block(block.0);
        cut.0[end..].fill(0);
        assert_eq!(count(&cut), 0, "{end}");
    }
    // SAFETY: as above, and invalidated.
    unsafe { writer::empty(block.0.as_mut_ptr()) };
    assert_eq!(count(&block), 0);
    let new = filled(1, 10, 1);
    for end in 4..BLOCK_HEAD_BYTES {
        block.0[4..end].copy_from_slice(&new.0[4..end]);
        assert_eq!(count(&block), 0, "{end}");
    }
    let mut again = BlockWriter::without_block();
    // SAFETY: emptied, aligned, and it outlives the writer.
    unsafe { again.start(block.0.as_mut_ptr(), 3, 10, 1) };
    assert_eq!(count(&block), 0);
    again.put(&layout::GraphRunBegin { run: 7, ..Default::default() }.encode()).expect("room");
    assert_eq!(count(&block), 1);
}

#[test]
fn records_of_a_lane_come_in_the_order_they_were_made() {
    let (newest, oldest, middle) =
        (filled(300_000, 7, 0), filled(100_000, 5, 1), filled(200_000, 6, 2));
    let runs = runs(&file(&[&newest, &oldest, &middle]));
    assert!(runs.is_sorted());
    assert_eq!((runs[0], runs.len() % 3), (100_000, 0));
}

#[test]
fn a_copy_of_a_recording_says_that_it_is_one() {
    let path = std::env::temp_dir().join(format!("ggprof-live-{}", std::process::id()));
    let mut bytes = small_spool::bytes();
    // A record that is being written: it is no part of the copy.
    let unfinished = bytes.len() - 64;
    bytes[unfinished + 8] = 1;
    std::fs::write(&path, &bytes).expect("it can be written");
    let live = LiveSpool::open(&path).expect("it can be opened");
    live.ask(layout::Control::Stop).expect("it can be written");
    let mut copy = vec![0; bytes.len()];
    let put = |at: u64, piece: &[u8]| {
        copy[at as usize..][..piece.len()].copy_from_slice(piece);
        Ok(())
    };
    live.snapshot(put).expect("it can be read");
    std::fs::remove_file(path).expect("it is there");
    let (spool, original) = (Spool::open(&copy).expect("a recording"), small_spool::bytes());
    assert!(spool.header().snapshot && !spool.header().records());
    let original: Vec<_> = Spool::open(&original).expect("a recording").records().collect();
    assert_eq!(spool.records().collect::<Vec<_>>(), original);
}
