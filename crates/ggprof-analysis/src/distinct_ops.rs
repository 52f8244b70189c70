//! The ops of a recording that differ in more than their names, with what each took in the model.

use crate::attention::Attended;
use crate::statistics::median;
use ggprof_trace::{BackendIndex, EventId, Measured, NodeId, Signature, SignatureId, Trace};
use hashbrown::HashMap;

/// All calls of one op on one backend, with the same shapes, types, strides and parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct DistinctOp {
    pub signature: SignatureId,
    pub backend: BackendIndex,
    /// The longest call, and its node.
    pub longest: EventId,
    pub node: NodeId,
    pub count: usize,
    pub total_ns: u64,
    /// What one call took in the middle.
    pub median_ns: f64,
    /// The most threads that took part in a call; `None` where that is not known.
    pub threads: Option<u32>,
    /// How many tokens the last token of a call attended to, in the middle of all calls.
    pub depth: Option<u64>,
}

/// Those that took longest first. Splits whose ops were not told apart are none.
pub fn distinct_ops(trace: &Trace) -> Vec<DistinctOp> {
    let attended = Attended::of(trace);
    let mut calls: HashMap<(SignatureId, BackendIndex), Calls> = HashMap::new();
    for event in trace.events.iter().filter(|event| event.is_op()) {
        let is_split = trace.op_name(event.node) == Signature::WHOLE_SPLIT;
        if is_split || event.measured == Measured::HostCall {
            continue;
        }
        let key = (trace.node(event.node).signature, event.backend);
        let calls = calls.entry(key).or_default();
        calls.times_ns.push(event.charged_ns as f64);
        if calls.longest.is_none_or(|(longest_ns, _)| event.charged_ns > longest_ns) {
            calls.longest = Some((event.charged_ns, event.id));
        }
        let depth = event.graph_run.and_then(|run| attended.depth(run));
        calls.depths.extend(depth.map(|depth| depth as f64));
        let threads = trace.events.threads(event.id).map(|fold| fold.threads);
        calls.threads = calls.threads.max(threads);
    }
    let mut ops: Vec<DistinctOp> =
        calls.into_iter().filter_map(|(key, calls)| calls.op(trace, key)).collect();
    ops.sort_by_key(|op| (std::cmp::Reverse(op.total_ns), op.signature, op.backend));
    ops
}

#[derive(Debug, Default)]
struct Calls {
    times_ns: Vec<f64>,
    longest: Option<(u64, EventId)>,
    depths: Vec<f64>,
    threads: Option<u32>,
}

impl Calls {
    fn op(
        self,
        trace: &Trace,
        (signature, backend): (SignatureId, BackendIndex),
    ) -> Option<DistinctOp> {
        let (_, longest) = self.longest?;
        Some(DistinctOp {
            signature,
            backend,
            longest,
            node: trace.events.get(longest).node,
            count: self.times_ns.len(),
            total_ns: self.times_ns.iter().sum::<f64>() as u64,
            median_ns: median(&self.times_ns),
            threads: self.threads,
            depth: (!self.depths.is_empty()).then(|| median(&self.depths) as u64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn calls_that_differ_in_their_names_only_are_one_op() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             backend 1 CPU cpu
             op GPU MUL_MAT 0..10 Qcur-0 f32[8] <- f32[8,8] f32[8]
             op GPU MUL_MAT 10..14 Qcur-1 f32[8] <- f32[8,8] f32[8]
             op GPU MUL_MAT 14..15 Qcur-2 f32[8] <- f32[8,8] f32[8]
             op GPU MUL_MAT 15..55 Kcur-0 f32[8] <- f32[8,8] f32[8] params=1
             op CPU MUL_MAT 60..65 Kcur-1 f32[8] <- f32[8,8] f32[8] threads=4:9:3:1
             op GPU SPLIT 70..95
             op GPU SCALE 95..99 f32[8] <- f32[8] measured=host_call
             copy GPU H2D 99..100 8",
        );
        let ops: Vec<_> = distinct_ops(&trace)
            .into_iter()
            .map(|op| {
                let name = trace.tensor_name(op.node).unwrap().to_owned();
                (name, op.count, op.total_ns, op.median_ns, op.threads)
            })
            .collect();
        assert_eq!(
            ops,
            [
                ("Kcur-0".to_owned(), 1, 40, 40.0, None),
                ("Qcur-0".to_owned(), 3, 15, 4.0, None),
                ("Kcur-1".to_owned(), 1, 5, 5.0, Some(4)),
            ]
        );
    }
}
