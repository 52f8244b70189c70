//! A recording as another machine would have made it: the same ticks of the processor, and other clocks
//! of the system.

use std::path::Path;

use ggprof_spool::layout::{BLOCK_BYTES, HEADER_BYTES};

/// How the clocks of the other machine differ.
#[derive(Debug, Clone, Copy)]
pub struct OtherClock {
    /// It was started so much earlier (its monotonic clock is so far ahead).
    pub monotonic_ns: i64,
    /// Its time of day is so far ahead.
    pub realtime_ns: i64,
    /// And both run faster by so many millionths.
    pub ppm: i64,
}

const START_MONOTONIC: usize = 40;
const START_REALTIME: usize = 48;
const BLOCK_HEAD: usize = 64;
/// Kinds of records, and where in them each clock is read.
const CLOCK_SAMPLE: u8 = 0x0e;
const SAMPLE: u8 = 0x16;
const BUFFER: u8 = 0x87;

impl OtherClock {
    /// Writes the recording as it would be there.
    pub fn rewrite(&self, from: &Path, to: &Path) {
        let mut bytes = std::fs::read(from).expect("a recording");
        let start_ns = read(&bytes, START_MONOTONIC);
        let start_unix_ns = read(&bytes, START_REALTIME);
        let later = |ns: u64, since: u64, by: i64| {
            let gone = ns as i64 - since as i64;
            (ns as i64 + by + gone * self.ppm / 1_000_000) as u64
        };
        let monotonic = |ns: u64| later(ns, start_ns, self.monotonic_ns);
        let realtime = |ns: u64| later(ns, start_unix_ns, self.realtime_ns);
        for (kind, at) in records(&bytes) {
            match kind {
                CLOCK_SAMPLE => {
                    change(&mut bytes, at + 16, monotonic);
                    change(&mut bytes, at + 24, realtime);
                }
                SAMPLE => change(&mut bytes, at + 8, monotonic),
                BUFFER => [32, 40].iter().for_each(|by| change(&mut bytes, at + by, monotonic)),
                _ => {}
            }
        }
        change(&mut bytes, START_MONOTONIC, monotonic);
        change(&mut bytes, START_REALTIME, realtime);
        std::fs::write(to, bytes).expect("it can be written");
    }
}

fn read(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// A clock that stands at 0 was not read.
fn change(bytes: &mut [u8], at: usize, change: impl Fn(u64) -> u64) {
    let known = read(bytes, at);
    if known != 0 {
        bytes[at..at + 8].copy_from_slice(&change(known).to_le_bytes());
    }
}

/// Kind and place of each record.
fn records(bytes: &[u8]) -> Vec<(u8, usize)> {
    let mut found = Vec::new();
    let blocks = (HEADER_BYTES..bytes.len()).step_by(BLOCK_BYTES);
    for block in blocks.filter(|&block| bytes[block..].starts_with(b"GBLK")) {
        let end = (block + BLOCK_BYTES).min(bytes.len());
        let mut at = block + BLOCK_HEAD;
        while at + 32 <= end && bytes[at] != 0 {
            found.push((bytes[at], at));
            let units = u16::from_le_bytes([bytes[at + 2], bytes[at + 3]]);
            at += 32 * if bytes[at] < 0x80 { 1 } else { usize::from(units.max(1)) };
        }
    }
    found
}
