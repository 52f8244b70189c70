//! Backends as people count them.
//!
//! A program makes a backend per context: three contexts have three CPU backends, which are
//! one processor. Those with the same name and device become one backend of the trace.

use super::tables::Tables;
use crate::model::{Backend, BackendIndex, DeviceType, Trace};
use ggprof_spool::layout;
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
            description: tables.text(record.description).to_owned(),
            device_type: match record.device_type {
                layout::DEVICE_UNKNOWN => DeviceType::Unknown,
                number => DeviceType::from_ggml(number.into()),
            },
            library_path: tables.text(record.path).to_owned(),
            process: None,
            called: String::new(),
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
