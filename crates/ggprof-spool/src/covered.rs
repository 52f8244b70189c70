//! From when to when a recording that is being written has graph runs. Its oldest and newest blocks say
//! it; the others, of which there may be gigabytes, are not read.

#![forbid(unsafe_code)]

use crate::layout::{APPENDED_LANE, BLOCK_HEAD_BYTES, ClockKind, ClockSample, DEFINITIONS_LANE};
use crate::live::LiveSpool;
use crate::reader::{self, Header};
use crate::record::{self, Record};
use std::collections::BTreeMap;
use std::io;

/// The blocks of each lane, in the order in which they were filled, with their numbers there.
type Lanes = BTreeMap<u32, Vec<(u32, u64)>>;

/// When the oldest graph run in the recording began and the newest one ended, in nanoseconds since 1970;
/// `None` while none is over.
pub fn covered(spool: &LiveSpool) -> io::Result<Option<(u64, u64)>> {
    let header = spool.header()?;
    let lanes = lanes(spool, &header)?;
    let mut samples = vec![ClockSample {
        ticks: header.start_ticks,
        monotonic_ns: header.start_monotonic_ns,
        realtime_ns: header.start_realtime_ns,
        ..ClockSample::default()
    }];
    let (mut first, mut last) = (None, None);
    for (&lane, blocks) in &lanes {
        let oldest = blocks.iter();
        first = earlier(first, search(spool, lane, oldest, &mut samples, begin)?.first().copied());
        let newest = blocks.iter().rev();
        last = last.max(search(spool, lane, newest, &mut samples, end)?.last().copied());
    }
    newest_sample(spool, &lanes, &mut samples)?;
    samples.sort_unstable_by_key(|sample| sample.ticks);
    let unix_ns = |ticks: u64| unix_ns(&header, &samples, ticks);
    let ends = first.zip(last).filter(|(first, last)| first < last);
    Ok(ends.and_then(|(first, last)| unix_ns(first).zip(unix_ns(last))))
}

fn lanes(spool: &LiveSpool, header: &Header) -> io::Result<Lanes> {
    let mut lanes = Lanes::new();
    for index in 0..spool.whole_blocks()?.min(header.reserved_blocks) {
        if let Some((lane, sequence)) = spool.owner(index)?
            && !matches!(lane, DEFINITIONS_LANE | APPENDED_LANE)
        {
            lanes.entry(lane).or_default().push((sequence, index));
        }
    }
    lanes.values_mut().for_each(|blocks| blocks.sort_unstable());
    Ok(lanes)
}

fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

fn begin(record: &Record) -> Option<u64> {
    if let Record::GraphRunBegin(run) = record { Some(run.ticks) } else { None }
}

fn end(record: &Record) -> Option<u64> {
    if let Record::GraphRunEnd(run) = record { Some(run.ticks) } else { None }
}

/// What is wanted, in the first block of a lane that has any. Samples on the way are kept.
fn search<'b>(
    spool: &LiveSpool,
    lane: u32,
    blocks: impl Iterator<Item = &'b (u32, u64)>,
    samples: &mut Vec<ClockSample>,
    wanted: fn(&Record) -> Option<u64>,
) -> io::Result<Vec<u64>> {
    for block in blocks {
        let records = records(spool, lane, *block)?;
        samples.extend(records.iter().filter_map(sample));
        let found: Vec<u64> = records.iter().filter_map(wanted).collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// There is one in every second; lane by lane, the newest blocks first.
fn newest_sample(
    spool: &LiveSpool,
    lanes: &Lanes,
    samples: &mut Vec<ClockSample>,
) -> io::Result<()> {
    let most = lanes.values().map(Vec::len).max().unwrap_or(0);
    for behind in 0..most {
        let mut is_found = false;
        for (&lane, blocks) in lanes {
            let Some(block) = blocks.iter().rev().nth(behind) else { continue };
            let of_block = records(spool, lane, *block)?;
            let before = samples.len();
            samples.extend(of_block.iter().filter_map(sample));
            is_found |= samples.len() > before;
        }
        if is_found {
            break;
        }
    }
    Ok(())
}

fn sample(record: &Record) -> Option<ClockSample> {
    if let Record::Clock(sample) = record { Some(*sample) } else { None }
}

/// None of a block that has another owner by now.
fn records(spool: &LiveSpool, lane: u32, (sequence, index): (u32, u64)) -> io::Result<Vec<Record>> {
    let mut bytes = Vec::new();
    let owner = (index, lane, sequence);
    let is_there = spool.new_records(owner, BLOCK_HEAD_BYTES, false, &mut bytes)?.is_some();
    let (mut rest, mut records) = (if is_there { &bytes[..] } else { &[] }, Vec::new());
    while let Some(length) = reader::whole_record(rest) {
        records.extend(record::decode(&rest[..length]));
        rest = &rest[length..];
    }
    Ok(records)
}

/// From the sample before, at the rate of all of them; `None` where there is no rate.
fn unix_ns(header: &Header, samples: &[ClockSample], ticks: u64) -> Option<u64> {
    let before = samples.partition_point(|sample| sample.ticks <= ticks).saturating_sub(1);
    let (first, nearest, last) = (samples.first()?, samples.get(before)?, samples.last()?);
    let apart = |from: u64, to: u64| i128::from(to) - i128::from(from);
    let mut since = apart(nearest.ticks, ticks);
    if header.clock == Some(ClockKind::CycleCounter) {
        let ns = apart(first.monotonic_ns, last.monotonic_ns);
        since = (since * ns).checked_div(apart(first.ticks, last.ticks))?;
    }
    u64::try_from(i128::from(nearest.realtime_ns) + since).ok()
}
