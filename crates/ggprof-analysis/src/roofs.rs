//! How close work comes to what its backend's device can do: to what was measured of the device, or
//! else to the best that the recording itself shows. The two are never mixed up.

use crate::grouping::{ShapeRow, sums_by_shape};
use crate::node_sums::NodeSums;
use crate::peaks::{Operands, Peaks};
use crate::totals::Totals;
use crate::work::Work;
use ggprof_ggml::{WHOLE_ATTENTION, is_matrix_product};
use ggprof_trace::{BackendIndex, EventKind, Signature, Trace};

/// Of a backend's time: what takes less may be fast by accident, such as out of a cache.
const LEAST_SHARE: f64 = 0.01;

/// Sums over shapes may come out this much faster than the fastest shape.
const ROUNDING: f64 = 1e-9;

/// What a roof was taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoofFrom {
    Measured,
    BestSeen,
}

/// What a backend can do at most, in bytes and operations per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackendRoof {
    pub basis: RoofFrom,
    pub bytes_per_s: Option<f64>,
    pub f32_ops_per_s: Option<f64>,
    pub f16_ops_per_s: Option<f64>,
    pub int8_ops_per_s: Option<f64>,
}

/// One for each backend of the recording.
#[derive(Debug)]
pub struct Roofs(Vec<BackendRoof>);

pub fn roofs(trace: &Trace, sums: &NodeSums, peaks: Option<&Peaks>) -> Roofs {
    let measured = |backend| {
        let roof = peaks?.roof_of(trace, backend)?;
        let of = |operands| roof.ops_per_s(operands);
        Some(BackendRoof {
            basis: RoofFrom::Measured,
            bytes_per_s: roof.read_bytes_per_s,
            f32_ops_per_s: of(Operands::F32),
            f16_ops_per_s: of(Operands::F16),
            int8_ops_per_s: of(Operands::Int8),
        })
    };
    let backends = (0..trace.backends.len()).map(|at| BackendIndex(at as u16));
    let measured: Vec<_> = backends.map(measured).collect();
    if measured.iter().all(Option::is_some) {
        return Roofs(measured.into_iter().flatten().collect());
    }
    let seen = best_seen(trace, sums);
    Roofs(measured.into_iter().zip(seen).map(|(measured, seen)| measured.unwrap_or(seen)).collect())
}

impl Roofs {
    pub fn of(&self, backend: BackendIndex) -> &BackendRoof {
        &self.0[usize::from(backend.0)]
    }
}

impl BackendRoof {
    /// The part of the time that the work had to take at least; `None` for copies, and where the work or
    /// the roof is not known. Reading and computing may happen at the same time, so the longer of the two counts.
    /// What is faster than the best that was seen took too little time to count there: that best is no limit
    /// of it, so `None` too.
    pub fn share(&self, trace: &Trace, totals: &Totals) -> Option<f64> {
        let longest = trace.event(totals.longest);
        if longest.kind != EventKind::Op {
            return None;
        }
        let ops_per_s = self.ops_per_s(operands_of(trace, trace.signature(longest.node)));
        let memory = Some(totals.gigabytes_per_second()? * 1e9 / self.bytes_per_s?);
        let compute = totals.gigaflops_per_second().zip(ops_per_s);
        let compute = compute.map(|(rate, most)| rate * 1e9 / most);
        let share = memory.into_iter().chain(compute).reduce(f64::max)?;
        (self.basis == RoofFrom::Measured || share <= 1.0 + ROUNDING).then_some(share)
    }

    /// What work takes at least; `None` where the work or the roof is not known.
    pub fn least_ns(&self, trace: &Trace, signature: &Signature, work: &Work) -> Option<f64> {
        let memory_s = work.bytes_moved()? as f64 / self.bytes_per_s?;
        let ops_per_s = self.ops_per_s(operands_of(trace, signature));
        let compute_s = work.flops.zip(ops_per_s).map(|(flops, rate)| flops as f64 / rate);
        Some(memory_s.max(compute_s.unwrap_or(0.0)) * 1e9)
    }

    /// Small operands may be widened, so what is faster for wider ones is within reach too.
    pub fn ops_per_s(&self, operands: Operands) -> Option<f64> {
        let all = [self.f32_ops_per_s, self.f16_ops_per_s, self.int8_ops_per_s];
        let usable = match operands {
            Operands::F32 => 1,
            Operands::F16 => 2,
            Operands::Int8 => 3,
        };
        all[..usable].iter().copied().flatten().reduce(f64::max)
    }
}

/// What an op multiplies: weights that are packed in blocks are multiplied as bytes.
pub fn operands_of(trace: &Trace, signature: &Signature) -> Operands {
    let place = match trace.text(signature.op) {
        op if is_matrix_product(op) => 0,
        WHOLE_ATTENTION => 1,
        _ => return Operands::F32,
    };
    let source = signature.sources.get(place).map(|source| source.tensor.type_id);
    let kind = source.and_then(|type_id| trace.types.get(type_id));
    match kind {
        Some(kind) if kind.block_elements > 1 => Operands::Int8,
        Some(kind) if kind.block_bytes == 2 => Operands::F16,
        _ => Operands::F32,
    }
}

/// The best rates of ops of one shape, over all their calls.
fn best_seen(trace: &Trace, sums: &NodeSums) -> Vec<BackendRoof> {
    let nothing = BackendRoof {
        basis: RoofFrom::BestSeen,
        bytes_per_s: None,
        f32_ops_per_s: None,
        f16_ops_per_s: None,
        int8_ops_per_s: None,
    };
    let mut best = vec![nothing; trace.backends.len()];
    let rows = sums_by_shape(trace, sums);
    // Splits that were timed as a whole are no ops, and most of the time where ops were sampled.
    let is_whole = |row: &&ShapeRow| {
        trace.text(trace.nodes.signature(row.signature).op) == Signature::WHOLE_SPLIT
    };
    let mut busy_ns = vec![0u128; trace.backends.len()];
    for row in rows.iter().filter(|row| !is_whole(row)) {
        busy_ns[usize::from(row.backend.0)] += row.totals.total_ns;
    }
    for row in rows.iter().filter(|row| row.kind == EventKind::Op) {
        let place = usize::from(row.backend.0);
        if (row.totals.total_ns as f64) < LEAST_SHARE * busy_ns[place] as f64 {
            continue;
        }
        let best = &mut best[place];
        raise(&mut best.bytes_per_s, row.totals.gigabytes_per_second());
        // Of whatever operands: most ops never come near what their device can compute.
        raise(&mut best.f32_ops_per_s, row.totals.gigaflops_per_second());
    }
    best
}

fn raise(best: &mut Option<f64>, giga_per_s: Option<f64>) {
    let rate = giga_per_s.map(|rate| rate * 1e9);
    *best = best.iter().copied().chain(rate).reduce(f64::max);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::by_op;
    use crate::node_sums::node_sums;
    use crate::peaks::{ComputeRate, CpuPeaks, ReadRate};
    use ggprof_trace::text_fixture;

    /// 56 bytes and 16 operations in 56 ns, then the same in half of the time; 12 bytes in 12 ns.
    const EVENTS: &str = "backend 0 CPU cpu\nbackend 1 CUDA0 gpu NVIDIA H200
        op CPU MUL_MAT 0..56 a f32[2,1] <- f32[4,2] f32[4,1]
        op CPU ADD 100..112 x f32[1] <- f32[1] f32[1]
        op CUDA0 MUL_MAT 0..28 a f32[2,1] <- f32[4,2] f32[4,1]";

    fn shares(peaks: Option<&Peaks>) -> Vec<(String, RoofFrom, Option<f64>)> {
        let trace = text_fixture::parse(EVENTS);
        let sums = node_sums(&trace);
        let roofs = roofs(&trace, &sums, peaks);
        let row = |row: &crate::OpRow| {
            let roof = roofs.of(row.backend);
            let name = format!("{} {}", trace.backend(row.backend).label(), trace.text(row.op));
            (name, roof.basis, roof.share(&trace, &row.totals))
        };
        by_op(&trace, &sums).iter().map(row).collect()
    }

    #[test]
    fn without_peaks_the_best_seen_counts() {
        let best = |name: &str| (name.to_owned(), RoofFrom::BestSeen, Some(1.0));
        assert_eq!(shares(None), [best("CPU MUL_MAT"), best("CUDA0 MUL_MAT"), best("CPU ADD")]);
    }

    /// A hundredth of the time is the least that counts: the addition takes less, and its memory is in a
    /// cache.
    #[test]
    fn what_is_faster_than_the_best_that_counts_has_no_share_of_it() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu
             op CPU MUL_MAT 0..5600 a f32[2,1] <- f32[4,2] f32[4,1]
             op CPU ADD 6000..6001 x f32[1024] <- f32[1024] f32[1024]",
        );
        let sums = node_sums(&trace);
        let roofs = roofs(&trace, &sums, None);
        let shares: Vec<_> = by_op(&trace, &sums)
            .iter()
            .map(|row| roofs.of(row.backend).share(&trace, &row.totals))
            .collect();
        assert_eq!(shares, [Some(1.0), None]);
    }

    #[test]
    fn the_longer_of_reading_and_computing_counts() {
        let rate = |ops_per_s| ComputeRate { operands: Operands::F32, by: "".into(), ops_per_s };
        let cpu = |ops_per_s| CpuPeaks {
            name: "".into(),
            processors: 1,
            read: vec![ReadRate { threads: 1, bytes_per_s: 4e9 }],
            compute: vec![rate(ops_per_s)],
        };
        let peaks = |ops_per_s| Peaks {
            version: 1,
            measured_at_unix_s: 0,
            cpu: cpu(ops_per_s),
            devices: Vec::new(),
        };
        let of_cpu = |peaks: &Peaks| shares(Some(peaks))[0].clone();
        assert_eq!(
            of_cpu(&peaks(100e9)),
            ("CPU MUL_MAT".to_owned(), RoofFrom::Measured, Some(56.0 / 56.0 / 4.0))
        );
        let (_, _, share) = of_cpu(&peaks(1e9));
        assert!((share.unwrap() - 16.0 / 56.0).abs() < 1e-9, "{share:?}");
        // Nothing was measured of the device.
        assert_eq!(shares(Some(&peaks(1e9)))[1].1, RoofFrom::BestSeen);
    }

    /// One token of two hundred was sampled, and the others were timed as a whole.
    #[test]
    fn samples_show_the_best_rate_of_all() {
        let mut text = "backend 0 GPU gpu
            run 0..56
            op GPU MUL_MAT 0..56 a f32[2,1] <- f32[4,2] f32[4,1] run=0 measured=device\n"
            .to_owned();
        for run in 1..200 {
            let (start, end) = (run * 100, run * 100 + 56);
            text += &format!(
                "run {start}..{end}
                 op GPU SPLIT {start}..{end} x f32[2,1] <- f32[2,1] run={run} measured=device\n"
            );
        }
        let trace = text_fixture::parse(&text);
        let roofs = roofs(&trace, &node_sums(&trace), None);
        assert_eq!(roofs.of(BackendIndex(0)).bytes_per_s, Some(1e9));
    }
}
