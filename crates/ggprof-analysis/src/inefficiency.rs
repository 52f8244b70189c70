//! Which ops take longest for the bytes they handle.

use crate::grouping::OpRow;
use ggprof_trace::EventKind;

/// Ops by time per byte, worst first.
#[derive(Debug)]
pub struct Inefficiency {
    pub basis: Basis,
    pub rows: Vec<InefficientOp>,
}

/// Which bytes the ranking is by: the same for all rows, or they could not be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Bytes read and written.
    Moved,
    /// Bytes of the output only, because the recording does not describe the sources.
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
    let ops = ops.iter().filter(|row| row.kind == EventKind::Op && !row.totals.host_calls);
    let basis = match ops.clone().all(|row| row.totals.moved_bytes.is_some()) {
        true => Basis::Moved,
        false => Basis::Output,
    };
    let mut rows: Vec<InefficientOp> = ops
        .filter_map(|op| {
            let bytes = match basis {
                Basis::Moved => op.totals.moved_bytes?,
                Basis::Output => op.totals.output_bytes,
            };
            let ns_per_byte = op.totals.total_ns as f64 / bytes as f64;
            (bytes > 0).then(|| InefficientOp { op: op.clone(), bytes, ns_per_byte })
        })
        .collect();
    rows.sort_by(|a, b| b.ns_per_byte.total_cmp(&a.ns_per_byte));
    rows.truncate(n);
    Inefficiency { basis, rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::by_op;
    use ggprof_trace::text_fixture;

    #[track_caller]
    fn check(events: &str, basis: Basis, expected: &[(&str, f64)]) {
        let trace = text_fixture::parse(&format!("backend 0 CPU cpu\n{events}"));
        let found = inefficiency(&by_op(&trace), 2);
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
            Basis::Moved,
            &[("MUL_MAT", 96.0 / 56.0), ("ADD", 1.0)],
        );
    }

    #[test]
    fn by_output_bytes_if_an_op_is_not_described() {
        check(
            "op CPU MUL_MAT 0..96 x bytes=8
             op CPU ADD 100..112 x f32[1] <- f32[1] f32[1] bytes=4
             op CPU MUL 200..201 x bytes=0",
            Basis::Output,
            &[("MUL_MAT", 12.0), ("ADD", 3.0)],
        );
    }
}
