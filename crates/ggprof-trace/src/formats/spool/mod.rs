//! Turns the agent's recording file into a trace.
//!
//! The agent records facts: ticks, numbers and texts, in the order in which threads wrote them.
//! This module gives them their meaning. It collects tables first (`tables.rs`), because a
//! definition may come after its use. Ticks become nanoseconds (`clock.rs`), backends that are the
//! same to people become one (`backends.rs`), what happened becomes events (`events.rs`), and the
//! work of devices becomes part of them (`device.rs`).

mod backends;
mod batches;
mod buffers;
mod clock;
mod copies;
mod coverage;
mod device;
mod device_clocks;
mod device_events;
mod events;
mod fusions;
mod graph_calls;
mod kernel_name;
mod live;
mod machine;
mod nodes;
mod op_runs;
mod placement;
mod sensors;
mod tables;
mod transfers;
mod unseen;
mod whole_runs;

use super::ReadError;
use crate::model::{DeviceType, Dropped, Extent, Ggml, LossKind, Provenance, Stopped, Trace};
use clock::Clock;
use device_clocks::DeviceClocks;
use ggprof_spool::bytes::Bytes;
use ggprof_spool::layout;
use ggprof_spool::layout::{Control, StopReason, Window};
use ggprof_spool::reader::Header;
use ggprof_spool::scan::{OpReader, Scan, ScanError};
use std::collections::BTreeSet;
use std::io::Read;
use std::ops::RangeInclusive;
use tables::Tables;

pub use live::{Live, LiveCopy, LiveOp, LiveOps, News, Standing};

/// What every recording file begins with.
pub(super) const MAGIC: &[u8] = &ggprof_spool::layout::MAGIC;

/// Some graph runs of one scheduler, by the numbers that the recording gives them.
#[derive(Debug, Clone)]
pub struct Selection {
    pub scheduler: u32,
    pub runs: Vec<RangeInclusive<u32>>,
}

impl Selection {
    fn holds(&self, run: u32, scheduler: u32) -> bool {
        scheduler == self.scheduler && self.runs.iter().any(|range| range.contains(&run))
    }
}

/// Reads a recording from its beginning to its end, with all of it in memory.
pub fn read(mut input: impl Read) -> Result<Trace, ReadError> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    read_part(&bytes[..], None)
}

/// Reads a recording piece by piece.
pub fn read_source<S: Bytes + ?Sized>(source: &S) -> Result<Trace, ReadError> {
    read_part(source, None)
}

/// Reads a part of a recording that may still be growing.
pub fn read_selection<S: Bytes + ?Sized>(
    source: &S,
    selection: &Selection,
) -> Result<Trace, ReadError> {
    let mut trace = read_part(source, Some(selection))?;
    if let Some(provenance) = &mut trace.provenance {
        // The program runs on, and knows itself what it asked for.
        (provenance.cut_short, provenance.unfinished_runs) = (false, 0);
        provenance.extent = Extent::ToTheEnd;
    }
    Ok(trace)
}

fn read_part<S: Bytes + ?Sized>(
    source: &S,
    selection: Option<&Selection>,
) -> Result<Trace, ReadError> {
    let scan = Scan::open(source).map_err(|error| match error {
        ScanError::NotASpool(reason) => ReadError::NotAProfile(reason.to_string()),
        ScanError::Io(error) => ReadError::Io(error),
    })?;
    // Parts are asked for by programs, of themselves.
    let scan = if selection.is_some() { scan.on_this_thread() } else { scan };
    let header = scan.header().clone();
    let mut trace = Trace {
        writer: "ggprof".to_owned(),
        version: Some(header.version.into()),
        ..Trace::default()
    };
    let mut tables = Tables::gather(&scan, &mut trace)?;
    let unfinished_runs = tables.runs.values().filter(|run| run.end.is_none()).count() as u64;
    if header.reused_blocks > 0 || header.snapshot {
        whole_runs::keep(&mut tables);
    }
    if let Some(selection) = selection {
        tables.select(selection);
    }
    let extent = extent(&header);
    let clock = Clock::new(&header, &tables.clock_samples);
    let device_clocks = DeviceClocks::new(&tables.device_clocks);
    trace.provenance = Some(Provenance {
        command: header.command.clone(),
        pid: header.pid,
        cpu: header.cpu_name.clone(),
        system: machine::system(&tables),
        drivers: machine::drivers(&tables),
        recorded_at_unix_ns: header.start_realtime_ns,
        clock_anchors: clock::anchors(&header, &tables.clock_samples),
        day_clock: machine::day_clock(&tables),
        clock_error_ns: clock.error_ns(),
        device_clock_error_ns: device_clocks.error_ns(),
        ggml: tables.instances.iter().map(|instance| ggml(&tables, instance)).collect(),
        attached: header.attached,
        // If recording stopped by itself, it is not known how the program ended.
        cut_short: header.end_ticks == 0 && header.stop_reason == 0 && extent == Extent::ToTheEnd,
        unfinished_runs,
        extent,
        newest_of: newest_of(&header, &tables, unfinished_runs),
    });
    losses(&header, &mut trace);
    let backends = backends::merge(&tables, &mut trace);
    coverage::take(&tables, &backends, header.version, &mut trace);
    buffers::take(&tables, &mut trace);
    sensors::take(&tables, &mut trace);
    transfers::take(&tables, &clock, &mut trace);
    events::all(&tables, OpReader::of(&scan), &clock, &device_clocks, &backends, &mut trace)?;
    Ok(trace)
}

fn ggml(tables: &Tables, instance: &layout::Instance) -> Ggml {
    let text = |id: u32| tables.text(id).to_owned();
    let of_it = tables.backends.values().filter(|it| it.instance == instance.instance);
    let on_processor =
        of_it.filter(|it| DeviceType::from_ggml(it.device_type.into()) == DeviceType::Cpu);
    let processors: BTreeSet<String> = on_processor.map(|it| text(it.library)).collect();
    Ggml {
        library: text(instance.library),
        version: text(instance.version),
        commit: text(instance.commit),
        llama: text(instance.llama),
        processors: processors.into_iter().filter(|it| !it.is_empty()).collect(),
        path: text(instance.path),
    }
}

/// How much of the program's run the recording was to cover.
fn extent(header: &Header) -> Extent {
    if header.end_ticks != 0 || header.records() {
        return if header.snapshot { Extent::Snapshot } else { Extent::ToTheEnd };
    }
    match (header.control, header.window) {
        (Control::Window, Window::NotYet) => Extent::NotBegun,
        (Control::Stop, _) if header.graph_runs == 0 => Extent::NotBegun,
        _ => Extent::Stopped,
    }
}

/// Of how many graph runs these are the newest, where older ones made room for them.
fn newest_of(header: &Header, tables: &Tables, unfinished: u64) -> Option<u64> {
    let whole = tables.runs.values().filter(|run| run.end.is_some()).count() as u64;
    let all = header.graph_runs.saturating_sub(unfinished);
    (header.reused_blocks > 0 && all > whole).then_some(all)
}

/// What the recorder itself says is missing.
fn losses(header: &Header, trace: &mut Trace) {
    for (&count, dropped) in header.losses.iter().zip(Dropped::ALL) {
        if count > 0 {
            trace.lose_many(LossKind::Dropped(dropped), count, String::new);
        }
    }
    if let Some(stopped) = stopped(header) {
        trace.lose(LossKind::Stopped(stopped), String::new);
    }
}

/// Why the recorder gave up, if it did.
fn stopped(header: &Header) -> Option<Stopped> {
    match StopReason::of(header.stop_reason)? {
        StopReason::None => None,
        StopReason::NoSpace => Some(Stopped::NoSpace),
        StopReason::FileGone => Some(Stopped::FileGone),
        StopReason::Faults => Some(Stopped::Faults),
        StopReason::NoMemory => Some(Stopped::NoMemory),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_spool::layout;

    #[test]
    fn counters_stand_for_what_the_file_counts() {
        let named = |dropped| Dropped::ALL.iter().position(|&other| other == dropped);
        for (counter, dropped) in [
            (layout::LossCounter::NoBlock, Dropped::Records),
            (layout::LossCounter::NoLane, Dropped::GraphRuns),
            (layout::LossCounter::LogFull, Dropped::ThreadShares),
            (layout::LossCounter::NoLog, Dropped::Threads),
            (layout::LossCounter::GraphTooLarge, Dropped::Nodes),
            (layout::LossCounter::OpOutsideRun, Dropped::StrayOps),
            (layout::LossCounter::Fault, Dropped::Faults),
            (layout::LossCounter::NoBackendSlot, Dropped::Backends),
            (layout::LossCounter::InternerFull, Dropped::Descriptions),
            (layout::LossCounter::DeviceRecords, Dropped::DeviceRecords),
            (layout::LossCounter::ForkedChild, Dropped::Children),
            (layout::LossCounter::UnclearTicks, Dropped::UnclearOps),
        ] {
            assert_eq!(named(dropped), Some(counter as usize), "{dropped:?}");
        }
    }
}
