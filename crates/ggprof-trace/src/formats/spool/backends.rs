//! Backends as people count them, and how each was observed.
//!
//! A program makes a backend per context: three contexts have three CPU backends, which are
//! one processor. Those with the same name and device become one backend of the trace.

use super::tables::Tables;
use crate::model::{Backend, BackendIndex, Coverage, DeviceType, Trace};
use ggprof_spool::layout::{self, Covered, CoveredHow};
use hashbrown::HashMap;

/// Which backend of the trace each backend of the file is.
pub(super) type BackendMap = HashMap<u32, BackendIndex>;

pub(super) fn merge(tables: &Tables, trace: &mut Trace) -> BackendMap {
    let mut map = BackendMap::new();
    for (&number, record) in &tables.backends {
        let (name, device) = (tables.text(record.name), tables.text(record.device));
        let same = |backend: &Backend| backend.name == name && backend.device == device;
        if let Some(at) = trace.backends.iter().position(same) {
            map.insert(number, BackendIndex(at as u16));
            continue;
        }
        let id = free_id(trace, tables.place_of(number));
        let Some(index) = trace.backend_with_id(id) else { continue };
        trace.backends[usize::from(index.0)] = Backend {
            id,
            name: name.to_owned(),
            device: device.to_owned(),
            device_type: match record.device_type {
                u8::MAX => DeviceType::Unknown,
                number => DeviceType::from_ggml(number.into()),
            },
        };
        map.insert(number, index);
    }
    map
}

/// The backend's place in its scheduler, or the next number if another one has that.
fn free_id(trace: &Trace, place: Option<u16>) -> i32 {
    let taken = |id: i32| trace.backends.iter().any(|backend| backend.id == id);
    let first = i32::from(place.unwrap_or(0));
    (first..).find(|&id| !taken(id)).unwrap_or(first)
}

/// What was observed of each backend, the same for several of them said once.
pub(super) fn coverage(tables: &Tables, backends: &BackendMap, trace: &mut Trace) {
    for record in &tables.coverage {
        let entry = Coverage {
            subject: subject(tables, backends, trace, record),
            what: what(record.what).to_owned(),
            how: how(record.how).map(str::to_owned),
            reason: tables.text(record.reason).to_owned(),
        };
        if !trace.coverage.contains(&entry) {
            trace.coverage.push(entry);
        }
    }
    ops_by_kernels(trace);
}

/// A backend whose ops no call announces, but whose device tells of its kernels, is seen by
/// those.
fn ops_by_kernels(trace: &mut Trace) {
    let by_kernels: Vec<(String, Option<String>)> = trace
        .coverage
        .iter()
        .filter(|entry| entry.what == "kernels" && entry.how.is_some())
        .map(|entry| (entry.subject.clone(), entry.how.clone()))
        .collect();
    let unseen =
        trace.coverage.iter_mut().filter(|entry| entry.what == "ops" && entry.how.is_none());
    for entry in unseen {
        if let Some((_, how)) = by_kernels.iter().find(|(subject, _)| *subject == entry.subject) {
            entry.how = how.clone();
            entry.reason.clear();
        }
    }
}

fn subject(
    tables: &Tables,
    backends: &BackendMap,
    trace: &Trace,
    record: &layout::Coverage,
) -> String {
    match backends.get(&record.backend) {
        Some(&index) => trace.backend(index).label().to_owned(),
        None => tables.text(record.library).to_owned(),
    }
}

fn what(number: u16) -> &'static str {
    match number {
        n if n == Covered::Splits as u16 => "splits",
        n if n == Covered::Ops as u16 => "ops",
        n if n == Covered::BarrierWaits as u16 => "barrier waits",
        n if n == Covered::Fusions as u16 => "fusions",
        n if n == Covered::AsyncCopies as u16 => "asynchronous copies",
        n if n == Covered::Layout as u16 => "struct layouts",
        n if n == Covered::Copies as u16 => "copies",
        n if n == Covered::Kernels as u16 => "kernels",
        _ => "something newer than this ggprof",
    }
}

fn how(number: u8) -> Option<&'static str> {
    match number {
        n if n == CoveredHow::Not as u8 => None,
        n if n == CoveredHow::FunctionTable as u8 => Some("function table"),
        n if n == CoveredHow::GotSlot as u8 => Some("GOT slot"),
        n if n == CoveredHow::Serialized as u8 => Some("serialized"),
        n if n == CoveredHow::Probed as u8 => Some("probed"),
        n if n == CoveredHow::AbortCallback as u8 => Some("abort callback, first thread only"),
        n if n == CoveredHow::SymbolName as u8 => Some("symbol name"),
        n if n == CoveredHow::DeviceTimestamps as u8 => Some("timestamps of the device"),
        n if n == CoveredHow::ActivityRecords as u8 => Some("activity records of the device"),
        n if n == CoveredHow::InlineHook as u8 => Some("function entry"),
        n if n == CoveredHow::NodeByNode as u8 => Some("node by node"),
        _ => Some("in a newer way"),
    }
}
