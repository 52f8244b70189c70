//! The longest single calls.

use ggprof_trace::{EventId, Trace};
use std::cmp::Reverse;

/// The `n` longest events, longest first; the earlier one first if equally long. What counts is the
/// time that they are charged with, as in every sum: a device's op does nothing between its kernels,
/// whatever made them start late.
pub fn top_kernels(trace: &Trace, n: usize) -> Vec<EventId> {
    // The best so far, and room for as many again before the rest is thrown away.
    let mut longest: Vec<(Reverse<u64>, u32)> = Vec::new();
    let mut least_ns = 0;
    for (id, ns) in (0..).zip(trace.events.charges()) {
        if ns < least_ns || n == 0 {
            continue;
        }
        longest.push((Reverse(ns), id));
        if longest.len() >= n.saturating_mul(2) {
            longest.select_nth_unstable(n - 1);
            longest.truncate(n);
            least_ns = longest[n - 1].0.0;
        }
    }
    longest.sort_unstable();
    longest.into_iter().take(n).map(|(_, id)| EventId(id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn a_gap_between_kernels_is_no_work() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             op GPU A 0..900 measured=device
             kernel quantize 0..10
             kernel matvec 890..900
             op GPU B 900..930 measured=device
             kernel add 900..930",
        );
        assert_eq!(top_kernels(&trace, 1), [EventId(1)]);
    }

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
