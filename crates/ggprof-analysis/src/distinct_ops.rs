//! The ops of a recording that differ in more than their names, with what each took in the model.

use crate::attention::Attended;
use crate::estimates::{Estimate, estimates_by};
use crate::filter::work;
use crate::statistics::median;
use ggprof_trace::{BackendIndex, Event, EventId, Measured, NodeId, Signature, SignatureId, Trace};
use hashbrown::HashMap;

/// All calls of one op on one backend, with the same shapes, types, strides and parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct DistinctOp {
    pub signature: SignatureId,
    pub backend: BackendIndex,
    /// The longest call, and its node.
    pub longest: EventId,
    pub node: NodeId,
    /// With what is estimated where ops were recorded in samples.
    pub count: usize,
    pub total_ns: u64,
    /// What one call that was measured took in the middle.
    pub median_ns: f64,
    /// The most threads that took part in a call; `None` where that is not known.
    pub threads: Option<u32>,
    /// How many tokens the last token of a call attended to, in the middle of all calls.
    pub depth: Option<u64>,
}

/// Those that took longest first, without warm-ups. Splits whose ops were not told apart are none.
pub fn distinct_ops(trace: &Trace) -> Vec<DistinctOp> {
    let (attended, work) = (Attended::of(trace), work(trace));
    let is_work =
        |event: &Event| event.graph_run.is_none_or(|run| work.get(run.0 as usize) != Some(&false));
    let key_of = |event: &Event| key_of(trace, event).filter(|_| is_work(event));
    let mut calls: HashMap<DistinctKey, Calls> = HashMap::new();
    for event in trace.events.iter() {
        let Some(key) = key_of(&event) else { continue };
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
    let estimates = estimates_by(trace, key_of);
    let op = |(key, calls): (DistinctKey, Calls)| calls.op(trace, key, estimates.get(&key));
    let mut ops: Vec<DistinctOp> = calls.into_iter().filter_map(op).collect();
    ops.sort_by_key(|op| (std::cmp::Reverse(op.total_ns), op.signature, op.backend));
    ops
}

type DistinctKey = (SignatureId, BackendIndex);

/// `None` for what is no op of its own.
fn key_of(trace: &Trace, event: &Event) -> Option<DistinctKey> {
    let is_split = || trace.op_name(event.node) == Signature::WHOLE_SPLIT;
    let is_told = event.is_op() && event.measured != Measured::HostCall && !is_split();
    is_told.then(|| (trace.node(event.node).signature, event.backend))
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
        (signature, backend): DistinctKey,
        estimate: Option<&Estimate>,
    ) -> Option<DistinctOp> {
        let (_, longest) = self.longest?;
        let Estimate { ns, calls, .. } = estimate.copied().unwrap_or_default();
        Some(DistinctOp {
            signature,
            backend,
            longest,
            node: trace.events.get(longest).node,
            count: self.times_ns.len() + calls.round() as usize,
            total_ns: (self.times_ns.iter().sum::<f64>() + ns) as u64,
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

    /// Kernels are compiled in it.
    #[test]
    fn a_warm_up_does_not_count() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             change 0 warm-up
             batch 0..900 0:0+2!1
             run 0..900 batch=0
             op GPU ADD 0..900 x f32[8] run=0
             change 900 warmed-up
             change 901 cleared
             batch 1000..1030 0:0+8!1
             run 1000..1030 batch=1
             op GPU ADD 1000..1010 x f32[8] run=1
             op GPU MUL 1010..1030 y f32[8] run=1",
        );
        let told: Vec<_> = distinct_ops(&trace).iter().map(|op| (op.count, op.total_ns)).collect();
        assert_eq!(told, [(1, 20), (1, 10)]);
    }

    /// The longest of what was sampled is not the longest of all: most tokens were not sampled.
    #[test]
    fn samples_stand_for_what_was_not_sampled() {
        let split = |run: u32| {
            let (start, end) = (1000 * run, 1000 * run + 30);
            format!(
                "run {start}..{end}
                 op GPU SPLIT {start}..{end} x f32[8] <- f32[16] run={run} measured=device\n"
            )
        };
        let text = format!(
            "backend 0 GPU gpu
             run 0..100
             op GPU MUL_MAT 0..100 Qcur-0 f32[8,4] <- f32[8,8] f32[8,4] run=0 measured=device
             run 200..230
             op GPU ADD 200..210 l_out-0 f32[16] <- f32[16] f32[16] run=1 measured=device
             op GPU MUL_MAT 210..230 Qcur-0 f32[8] <- f32[8,8] f32[8] run=1 measured=device\n{}",
            (2..12).map(split).collect::<String>()
        );
        let trace = text_fixture::parse(&text);
        let told: Vec<_> =
            distinct_ops(&trace).iter().map(|op| (op.count, op.total_ns, op.median_ns)).collect();
        assert_eq!(told, [(11, 220, 20.0), (11, 110, 10.0), (1, 100, 100.0)]);
    }
}
