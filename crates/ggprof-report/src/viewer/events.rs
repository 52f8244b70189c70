//! What happened, as columns in the order of time.

use super::columns::Columns;
use super::device::device_work;
use ggprof_analysis::estimates::CopyTimes;
use ggprof_analysis::{Attended, Place, copy_consumers, places};
use ggprof_trace::{Event, EventId, Trace};

/// All events and, where they were recorded, what each thread did.
pub(super) fn columns(trace: &Trace, start_ns: u64) -> Columns {
    let mut order: Vec<u32> = (0..trace.events.len() as u32).collect();
    let starts: Vec<u64> = trace.events.starts().collect();
    order.sort_by_key(|&at| starts[at as usize]);
    let mut columns = Columns::default();
    events(&mut columns, trace, &order, start_ns);
    let mut place = vec![0u64; order.len()];
    for (at, &event) in order.iter().enumerate() {
        place[event as usize] = at as u64;
    }
    thread_shares(&mut columns, trace, &place);
    device_work(&mut columns, trace, &place, start_ns);
    let links = copy_consumers(trace);
    let at = |event: EventId| place[event.0 as usize];
    columns.steps("link_copy", links.iter().map(|&(copy, _)| at(copy)));
    columns.steps("link_op", links.iter().map(|&(_, op)| at(op)));
    columns
}

fn events(columns: &mut Columns, trace: &Trace, order: &[u32], start_ns: u64) {
    let places = places(trace);
    let each = || order.iter().map(|&at| trace.events.get(EventId(at)));
    let layer = |event: &Event| match places.of(event) {
        Place { layer: Some(layer), .. } => u64::from(layer.0) + 1,
        Place { layer: None, .. } => 0,
    };
    columns.steps("start", each().map(|event| event.start_ns - start_ns));
    columns.plain("duration", each().map(|event| event.duration_ns));
    // Nothing for most events, and so most columns of it take no room.
    columns.plain("uncharged", each().map(|event| uncharged(event.duration_ns, event.charged_ns)));
    columns.steps("node", each().map(|event| u64::from(event.node.0)));
    columns.plain("kind", each().map(|event| event.kind as u64));
    columns.plain("backend", each().map(|event| u64::from(event.backend.0)));
    columns.plain(
        "source_backend",
        each().map(|event| event.source_backend.map_or(0, |index| u64::from(index.0) + 1)),
    );
    columns.steps("run", each().map(|event| event.graph_run.map_or(0, |run| u64::from(run.0) + 1)));
    columns.steps("layer", each().map(|event| layer(&event)));
    columns.plain("module", each().map(|event| places.of(&event).module as u64));
    columns.plain("bytes", each().map(|event| event.bytes));
    columns.plain("measured", each().map(|event| event.measured as u64));
    // Copies of which only the call is known: their time is not the device's.
    let copies = CopyTimes::of(trace);
    columns.plain("untimed", each().map(|event| u64::from(copies.is_untimed(trace, &event))));
    // What is attended to, where that is less than the shapes say; nothing for all other ops.
    let attended = Attended::of(trace);
    let work = |event: &Event| attended.work(trace, event);
    let moved = |event: Event| work(&event).and_then(|work| work.bytes_moved()).unwrap_or(0);
    columns.plain("attended_bytes", each().map(moved));
    columns.plain(
        "attended_flops",
        each().map(|event| work(&event).and_then(|work| work.flops).unwrap_or(0)),
    );
    let threads = || each().map(|event| trace.events.threads(event.id).unwrap_or_default());
    columns.plain("threads", threads().map(|fold| fold.threads.into()));
    columns.plain("busy_sum", threads().map(|fold| fold.busy_sum_ns));
    columns.plain("wait_sum", threads().map(|fold| fold.wait_sum_ns));
    columns.plain("busy_max", threads().map(|fold| fold.busy_max_ns));
}

/// The part of a duration that does not count when times are added up.
pub(super) fn uncharged(duration_ns: u64, charged_ns: u64) -> u64 {
    duration_ns.saturating_sub(charged_ns)
}

/// Shares refer to events by their place in the order of time.
fn thread_shares(columns: &mut Columns, trace: &Trace, place: &[u64]) {
    let shares = || trace.events.thread_shares.iter();
    let event_start = |event: EventId| trace.events.start(event);
    columns.steps("share_event", shares().map(|share| place[share.event.0 as usize]));
    columns.plain("share_thread", shares().map(|share| share.thread.into()));
    // A thread can begin after the op did, never before.
    columns.plain(
        "share_offset",
        shares().map(|share| share.start_ns.saturating_sub(event_start(share.event))),
    );
    columns.plain("share_duration", shares().map(|share| share.duration_ns));
    columns.plain("share_wait", shares().map(|share| share.wait_ns));
}
