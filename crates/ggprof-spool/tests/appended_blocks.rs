//! Blocks that others put behind those of the agent.

mod small_spool;

use ggprof_spool::appendix::Appendix;
use ggprof_spool::layout::{Sample, Sensor};
use ggprof_spool::{Record, Spool};

/// The small recording, cut to this length, with so many samples behind it.
fn extended(length: usize, samples: u64) -> Option<Vec<u8>> {
    let mut bytes = small_spool::bytes();
    let header = Spool::open(&bytes).expect("a recording").header();
    bytes.resize(length, 0);
    let mut appendix = Appendix::behind(header.reserved_blocks, length as u64)?;
    if samples > 0 {
        let sensor = Sensor { sensor: 1, name_bytes: 5, ..Sensor::default() };
        appendix.put(&[&sensor.encode()[..], b"a GPU"].concat());
    }
    for value in 0..samples {
        appendix.put(&Sample { sensor: 1, value, ..Sample::default() }.encode());
    }
    bytes.extend(appendix.finish());
    Some(bytes)
}

#[test]
fn they_are_read_behind_the_agents_and_nothing_else_changes() {
    let whole = small_spool::bytes();
    let before: Vec<_> = Spool::open(&whole).expect("a recording").records().collect();
    // At the end of a block, and in the middle of one that was made and not taken yet.
    for length in [whole.len(), whole.len() + 65_536, whole.len() + 100] {
        // More than two blocks of them.
        let bytes = extended(length, 5000).expect("it has all its blocks");
        let records: Vec<_> = Spool::open(&bytes).expect("a recording").records().collect();
        assert_eq!(records[..before.len()], before, "{length}");
        let added = &records[before.len()..];
        assert!(matches!(&added[0], Ok(Record::Sensor { name, .. }) if name == "a GPU"));
        let values = added[1..].iter().map(|record| match record {
            Ok(Record::Sample(sample)) => sample.value,
            other => panic!("{other:?}"),
        });
        assert!(values.eq(0..5000), "{length}");
    }
}

#[test]
fn without_anything_to_add_the_file_stays_as_it_is() {
    let whole = small_spool::bytes();
    assert_eq!(extended(whole.len(), 0), Some(whole));
}

#[test]
fn a_file_that_lacks_blocks_is_left_alone() {
    let whole = small_spool::bytes();
    for length in [0, 4095, 4096, whole.len() - 1] {
        assert_eq!(extended(length, 1), None, "{length}");
    }
}
