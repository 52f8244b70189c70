//! The longest single calls.

use ggprof_trace::{EventId, Trace};
use std::cmp::Reverse;

/// The `n` longest events, longest first; the earlier one first if equally long.
pub fn top_kernels(trace: &Trace, n: usize) -> Vec<EventId> {
    let durations = trace.events.durations();
    let order = |id: &EventId| (Reverse(durations[id.0 as usize]), id.0);
    let mut ids: Vec<EventId> = (0..durations.len() as u32).map(EventId).collect();
    if n < ids.len() {
        ids.select_nth_unstable_by_key(n, order);
        ids.truncate(n);
    }
    ids.sort_unstable_by_key(order);
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn longest_first_then_earliest() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             op CPU A 0..5
             op CPU B 5..25
             op CPU C 25..30
             copy CPU H2D 30..60 8",
        );
        for (n, expected) in [(0, vec![]), (1, vec![3]), (3, vec![3, 1, 0]), (9, vec![3, 1, 0, 2])]
        {
            let ids: Vec<u32> = top_kernels(&trace, n).iter().map(|id| id.0).collect();
            assert_eq!(ids, expected, "top {n}");
        }
    }
}
