//! Which ops take longest for the bytes they handle.
//!
//! An op that hardly takes any time is slow for its few bytes and not worth a look, so only those
//! with a part of the time are ranked.

use crate::grouping::OpRow;
use ggprof_trace::EventKind;

/// The least part of the time of all ops that an op must have.
pub const LEAST_SHARE: f64 = 0.01;

/// Ops by time per byte, worst first.
#[derive(Debug)]
pub struct Inefficiency {
    pub basis: RankedBytes,
    pub rows: Vec<InefficientOp>,
}

/// Which bytes the ranking is by: the same for all rows, or they could not be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankedBytes {
    /// Bytes read and written.
    Moved,
    /// Bytes of the output only, because the recording does not describe the sources of the ops
    /// that most of the time went to.
    Output,
}

#[derive(Debug)]
pub struct InefficientOp {
    pub op: OpRow,
    pub bytes: u128,
    pub ns_per_byte: f64,
}

/// Ranks what [`by_op`](crate::by_op) found.
pub fn inefficiency(ops: &[OpRow], n: usize) -> Inefficiency {
    let ops = || ops.iter().filter(|row| is_ranked(row));
    let all_ns: f64 = ops().map(|row| row.totals.time_ns()).sum();
    let known = ops().filter(|row| row.totals.moved_bytes.is_some());
    let known_ns: f64 = known.map(|row| row.totals.time_ns()).sum();
    let basis = if 2.0 * known_ns >= all_ns { RankedBytes::Moved } else { RankedBytes::Output };
    let is_worth_it = |op: &&OpRow| op.totals.time_ns() >= LEAST_SHARE * all_ns;
    let mut rows: Vec<InefficientOp> = ops()
        .filter(is_worth_it)
        .filter_map(|op| {
            let bytes = match basis {
                RankedBytes::Moved => op.totals.moved_bytes?,
                RankedBytes::Output => op.totals.output_bytes,
            };
            let ns_per_byte = op.totals.total_ns as f64 / bytes as f64;
            (bytes > 0).then(|| InefficientOp { op: op.clone(), bytes, ns_per_byte })
        })
        .collect();
    rows.sort_by(|a, b| b.ns_per_byte.total_cmp(&a.ns_per_byte));
    rows.truncate(n);
    Inefficiency { basis, rows }
}

/// Calls that only start work took no time for it, and what has no bytes is no op of ggml's: splits
/// whose ops were not told apart, fills.
fn is_ranked(row: &OpRow) -> bool {
    let has_bytes = row.totals.output_bytes > 0 || row.totals.moved_bytes > Some(0);
    row.kind == EventKind::Op && !row.totals.host_calls && has_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::by_op;
    use crate::node_sums::node_sums;
    use ggprof_trace::text_fixture;

    #[track_caller]
    fn check(events: &str, basis: RankedBytes, expected: &[(&str, f64)]) {
        let trace = text_fixture::parse(&format!("backend 0 CPU cpu\n{events}"));
        let found = inefficiency(&by_op(&trace, &node_sums(&trace)), 2);
        let rows: Vec<_> =
            found.rows.iter().map(|row| (trace.text(row.op.op), row.ns_per_byte)).collect();
        assert_eq!((found.basis, rows.as_slice()), (basis, expected));
    }

    #[test]
    fn by_bytes_read_and_written() {
        check(
            "op CPU MUL_MAT 0..96 x f32[2,1] <- f32[4,2] f32[4,1] bytes=8
             op CPU ADD 100..112 x f32[1] <- f32[1] f32[1] bytes=4
             op CPU MUL 200..201 x f32[1] <- f32[1] f32[1] bytes=4
             op CPU VIEW 300..400 x f32[1] <- f32[1] bytes=4
             copy CPU H2D 400..500 1",
            RankedBytes::Moved,
            &[("MUL_MAT", 96.0 / 56.0), ("ADD", 1.0)],
        );
    }

    /// Of a device's splits that were timed as a whole, no op is known.
    #[test]
    fn what_is_not_described_does_not_matter_if_it_is_little_or_no_op() {
        check(
            "op CPU SPLIT 0..900 f32[8] <- f32[8] measured=device
             op CPU MUL_MAT 900..996 x f32[2,1] <- f32[4,2] f32[4,1] bytes=8
             op CPU SSM_SCAN 996..999 y bytes=4",
            RankedBytes::Moved,
            &[("MUL_MAT", 96.0 / 56.0)],
        );
    }

    #[test]
    fn trivia_are_not_ranked() {
        check(
            "op CPU MUL_MAT 0..1000 x f32[2,1] <- f32[4,2] f32[4,1] bytes=8
             op CPU ADD 1000..1009 x f32[1] <- bytes=4",
            RankedBytes::Moved,
            &[("MUL_MAT", 1000.0 / 56.0)],
        );
    }

    #[test]
    fn by_output_bytes_if_an_op_is_not_described() {
        check(
            "op CPU MUL_MAT 0..96 x bytes=8
             op CPU ADD 100..112 x f32[1] <- f32[1] f32[1] bytes=4
             op CPU MUL 200..201 x bytes=0",
            RankedBytes::Output,
            &[("MUL_MAT", 12.0), ("ADD", 3.0)],
        );
    }
}
