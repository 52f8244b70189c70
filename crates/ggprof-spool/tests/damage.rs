//! Any bytes at all: the reader gives what is whole, says where the rest was, and
//! never panics or loops.

mod small_spool;

use ggprof_spool::reader::DamageReason;
use ggprof_spool::scan::{Found, OpReader, Scan};
use ggprof_spool::{Damage, Record, Spool};

/// More records than any file of this size can hold.
const FAR_TOO_MANY: usize = 100_000;

fn read(bytes: &[u8]) -> (usize, Vec<DamageReason>) {
    let Ok(spool) = Spool::open(bytes) else { return (0, Vec::new()) };
    let _ = spool.header();
    let mut whole = 0;
    let mut damage = Vec::new();
    for record in spool.records().take(FAR_TOO_MANY) {
        match record {
            Ok(_) => whole += 1,
            Err(found) => damage.push(found.reason),
        }
    }
    assert!(whole + damage.len() < FAR_TOO_MANY);
    assert_eq!(scanned(bytes), spool.records().collect::<Vec<_>>());
    (whole, damage)
}

/// The same records, found block by block, with the ops in their places.
fn scanned(bytes: &[u8]) -> Vec<Result<Record, Damage>> {
    let scan = Scan::open(bytes).expect("a recording");
    let mut ops = OpReader::of(&scan);
    let mut records = Vec::new();
    let all = scan.all(|found| match found {
        Found::Record(record) => records.push(Ok(record)),
        Found::Damage(damage) => records.push(Err(damage)),
        Found::Ops(run) => {
            let each = ops.each(&run, |op| records.push(Ok(Record::Op(op.expect("an op")))));
            each.expect("the bytes are there");
        }
    });
    all.expect("the bytes are there");
    records
}

#[test]
fn every_truncation_gives_the_records_before_it() {
    let bytes = small_spool::bytes();
    let (all, _) = read(&bytes);
    let mut before = 0;
    // Every length through the header and the first records, then some beyond.
    let lengths = (0..8192).chain((8192..bytes.len()).step_by(61));
    for length in lengths {
        let (whole, damage) = read(&bytes[..length]);
        assert!(whole >= before, "{length}: fewer records in a longer file");
        assert!(whole == 0 || damage.contains(&DamageReason::FileCut), "{length}: {damage:?}");
        before = whole;
    }
    assert_eq!(read(&bytes).0, all);
}

#[test]
fn every_changed_byte_is_survived() {
    let bytes = small_spool::bytes();
    let (all, _) = read(&bytes);
    for at in (0..512).chain(4096..4096 + 2688).chain(69632..69632 + 128) {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            let (whole, _) = read(&changed);
            // A wrong length or kind may cost or make records of its own block,
            // but the other block's record stays, unless the header was hit.
            assert!(whole >= 1 || at < 512, "byte {at}");
            assert!(whole <= all + 100, "byte {at}");
        }
    }
}

#[test]
fn random_bytes_are_survived() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let bytes = small_spool::bytes();
    for _ in 0..300 {
        let mut changed = bytes.clone();
        for _ in 0..random() % 200 {
            let at = 4096 + random() as usize % (changed.len() - 4096);
            changed[at] = random() as u8;
        }
        read(&changed);
    }
    for length in [0, 1, 4095, 4096, 5000, 80_000] {
        let mut noise: Vec<u8> = (0..length).map(|_| random() as u8).collect();
        read(&noise);
        if length >= 16 {
            noise[..8].copy_from_slice(b"GGPROFSP");
            noise[8..12].copy_from_slice(&1_u32.to_le_bytes());
            read(&noise);
        }
    }
}

#[test]
fn an_unfinished_record_ends_its_block_only() {
    let mut bytes = small_spool::bytes();
    // What a kill leaves: a record whose first four bytes were not stored yet.
    let unfinished = 4096 + 64 + 32;
    bytes[unfinished..unfinished + 4].fill(0);
    let (whole, damage) = read(&bytes);
    assert_eq!(damage, [DamageReason::Uncommitted]);
    assert_eq!(whole, 2, "one record before it, one in the other block");
}

#[test]
fn an_unknown_kind_is_passed_over() {
    let mut bytes = small_spool::bytes();
    let (all, _) = read(&bytes);
    bytes[4096 + 64] = 0xf0;
    let spool = Spool::open(&bytes).expect("a recording");
    assert!(matches!(spool.records().next(), Some(Ok(Record::Unknown { kind: 0xf0, bytes: 32 }))));
    assert_eq!(read(&bytes), (all, Vec::new()));
}
