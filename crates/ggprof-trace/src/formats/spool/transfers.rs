//! Bytes that went to other machines, or came from them.

use super::clock::Clock;
use super::tables::Tables;
use crate::model::{Trace, Transfer};
use ggprof_spool::layout::{TRANSFER_RECEIVED, TRANSFER_WHOLE};

/// By start.
pub(super) fn take(tables: &Tables, clock: &Clock, trace: &mut Trace) {
    for record in &tables.transfers {
        let start_ns = clock.ns(record.start);
        trace.transfers.push(Transfer {
            process: None,
            connection: record.connection,
            is_received: record.flags & TRANSFER_RECEIVED != 0,
            is_whole: record.flags & TRANSFER_WHOLE != 0,
            port: (record.ports >> 16) as u16,
            other_port: record.ports as u16,
            offset: record.offset,
            bytes: record.bytes,
            start_ns,
            end_ns: clock.ns(record.end).max(start_ns),
        });
    }
    trace.transfers.sort_by_key(|transfer| (transfer.start_ns, transfer.offset));
}
