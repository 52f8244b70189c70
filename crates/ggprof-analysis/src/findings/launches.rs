//! R11, R12: a device that waits for the host between kernels, because they are small, or because
//! CUDA graphs are off.

use super::scene::Scene;
use super::{Certainty, Finding, Rule, What};
use crate::budget::{Budget, Spent};
use crate::phases::PhaseKind;
use ggprof_trace::{BackendIndex, Coverage, CoveredWhy};

#[derive(Debug, Clone, PartialEq)]
pub struct SmallKernels {
    pub backend: BackendIndex,
    pub kernels_per_run: u64,
    pub kernel_ns: u64,
    pub gap_ns: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct GraphsOff {
    pub backend: BackendIndex,
    pub kernels_per_run: u64,
    pub gap_ns: u64,
    pub why: WhyNoGraphs,
}

/// Why ggml launches kernels one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyNoGraphs {
    /// By the variable that is there for it.
    SwitchedOff,
    /// Experts were chosen for so many tokens at once. Some ways to compute that wait for the device in the
    /// middle, which a CUDA graph cannot contain.
    Experts {
        tokens: u64,
    },
    Unknown,
}

pub(super) const SMALL_KERNELS: Rule = Rule(11);
pub(super) const GRAPHS_OFF: Rule = Rule(12);

/// Of the phase's wall time.
const LEAST: f64 = 0.1;
/// Kernels longer than this hide the launch of the next one.
const SMALL_NS: u64 = 50_000;
/// Fewer are no reason to wait.
const MANY: u64 = 32;
/// Of a graph run that is not in pieces: one of the device, and one of the host before it.
const MOST_SPLITS: u64 = 3;
/// Between kernels of a CUDA graph the device waits for about one microsecond.
const GRAPH_GAP_NS: u64 = 2_000;

pub(super) fn find(scene: &Scene<'_>, place: usize, budget: &Budget) -> Vec<Finding> {
    if !matches!(budget.kind, PhaseKind::Generation | PhaseKind::Graph) {
        return Vec::new();
    }
    let launching = budget.rows.iter().filter_map(|row| match row.spent {
        Spent::Launching { backend } => Some((backend, row.ns)),
        _ => None,
    });
    launching.filter_map(|(backend, ns)| of_backend(scene, place, budget, backend, ns)).collect()
}

fn of_backend(
    scene: &Scene<'_>,
    place: usize,
    budget: &Budget,
    backend: BackendIndex,
    cost_ns: u64,
) -> Option<Finding> {
    let on_it = || scene.tallies[place].ops.iter().filter(|(key, _)| key.backend == backend);
    let kernels: u64 = on_it().map(|(_, sum)| sum.kernels).sum();
    let ns: u64 = on_it().filter(|(_, sum)| sum.kernels > 0).map(|(_, sum)| sum.ns).sum();
    // Of a usual run: where graphs are captured, the host takes longer.
    let mut gaps_ns = scene.tallies[place].gaps_ns.clone();
    gaps_ns.sort_unstable();
    let gap_ns = *gaps_ns.get(gaps_ns.len() / 2)?;
    let kernel_ns = ns / kernels.max(1);
    // Kernels may be known of some runs only.
    let kernels_per_run = kernels / gaps_ns.len() as u64;
    // The device also waits while kernels begin to be recorded, which is not the program's.
    let kernels = kernels_per_run.saturating_mul(budget.runs);
    let cost_ns = cost_ns.min(gap_ns.saturating_mul(kernels));
    if budget.share(cost_ns) < LEAST || kernel_ns > SMALL_NS || kernels_per_run < MANY {
        return None;
    }
    let has_graphs = scene.trace.backend(backend).is_cuda();
    // What another backend cuts into pieces is launched in pieces; other rules tell of that.
    if scene.tallies[place].splits > MOST_SPLITS * budget.runs {
        return None;
    }
    let why = why_no_graphs(scene, place, backend);
    // However short the pauses are, where somebody switched graphs off.
    let lacks_graphs = gap_ns >= GRAPH_GAP_NS || why == WhyNoGraphs::SwitchedOff;
    let (rule, what) = if has_graphs && lacks_graphs {
        (GRAPHS_OFF, What::GraphsOff(GraphsOff { backend, kernels_per_run, gap_ns, why }))
    } else {
        (
            SMALL_KERNELS,
            What::SmallKernels(SmallKernels { backend, kernels_per_run, kernel_ns, gap_ns }),
        )
    };
    let certainty = match &what {
        What::GraphsOff(GraphsOff { why: WhyNoGraphs::SwitchedOff, .. }) => Certainty::Certain,
        _ => Certainty::Likely,
    };
    Some(Finding { rule, budget: place, cost_ns, is_estimate: false, certainty, what })
}

fn why_no_graphs(scene: &Scene<'_>, place: usize, backend: BackendIndex) -> WhyNoGraphs {
    let trace = scene.trace;
    let label = trace.backend(backend).label();
    let is_off = |it: &Coverage| it.subject == label && it.why == CoveredWhy::GraphsOff;
    if trace.coverage.iter().any(is_off) {
        return WhyNoGraphs::SwitchedOff;
    }
    let ops = scene.tallies[place].ops.keys().filter(|key| key.backend == backend);
    let experts = ops.filter(|key| scene.op(key) == "MUL_MAT_ID");
    // [rows, experts of a token, tokens]
    match experts.map(|key| scene.signature(key).output.ne[2]).max() {
        Some(tokens) if tokens > 1 => WhyNoGraphs::Experts { tokens: tokens as u64 },
        _ => WhyNoGraphs::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::staged::{check, found_in, tokens};
    use ggprof_trace::{Covered, CoveredHow, Trace, text_fixture};

    /// Forty kernels a token.
    fn kernels(each_ns: u64, gap_ns: u64, splits: u64) -> String {
        let every_ns = each_ns + gap_ns;
        let op = |at: u64| {
            let (start, end) = (at * every_ns, at * every_ns + each_ns);
            let split = at * splits / 40;
            format!(
                "op GPU MUL_MAT {start}..{end} Qcur-{at} run=@ split={split}\n\
                 kernel matvec {start}..{end}\n"
            )
        };
        let ops: String = (0..40).map(op).collect();
        tokens(3, 40 * every_ns, 40 * every_ns, &ops)
    }

    #[test]
    fn a_device_that_waits_between_kernels() {
        let waits = kernels(4_000, 4_000, 1);
        // Not after the last kernel of a token.
        check(SMALL_KERNELS, &waits, 3 * 39 * 4_000, &kernels(4_000, 100, 1));
        check(SMALL_KERNELS, &waits, 3 * 39 * 4_000, &kernels(4_000, 4_000, 8));
    }

    fn cuda(gap_ns: u64) -> Trace {
        let text = format!("backend 0 GPU gpu\n{}", kernels(4_000, gap_ns, 1));
        text_fixture::parse(&text.replace("GPU", "CUDA0"))
    }

    #[test]
    fn why_there_are_no_graphs() {
        let why = |trace: &Trace| {
            let found = found_in(trace);
            let What::GraphsOff(GraphsOff { why, .. }) = found[0].what else { panic!() };
            (why, found[0].certainty)
        };
        let mut trace = cuda(4_000);
        assert_eq!(why(&trace), (WhyNoGraphs::Unknown, Certainty::Likely));
        let switched_off = Coverage {
            subject: "CUDA0".to_owned(),
            what: Covered::Kernels,
            how: CoveredHow::ActivityRecords,
            why: CoveredWhy::GraphsOff,
            detail: String::new(),
        };
        trace.coverage.push(switched_off.clone());
        assert_eq!(why(&trace), (WhyNoGraphs::SwitchedOff, Certainty::Certain));
        let mut short = cuda(1_000);
        short.coverage.push(switched_off);
        assert_eq!(why(&short), (WhyNoGraphs::SwitchedOff, Certainty::Certain));
        let text = kernels(4_000, 4_000, 1)
            .replace("MUL_MAT", "MUL_MAT_ID")
            .replace(" run=", " f32[8,2,16] <- f32[8,8,4] f32[8,2,16] i32[2,16] run=");
        let text = format!("backend 0 GPU gpu\n{text}").replace("GPU", "CUDA0");
        let experts = WhyNoGraphs::Experts { tokens: 16 };
        assert_eq!(why(&text_fixture::parse(&text)), (experts, Certainty::Likely));
    }

    #[test]
    fn gaps_are_shorter_in_a_cuda_graph() {
        let on_cuda = |gap_ns: u64| {
            let found = found_in(&cuda(gap_ns));
            found.iter().map(|finding| finding.rule).collect::<Vec<_>>()
        };
        assert_eq!(on_cuda(4_000), [GRAPHS_OFF]);
        assert_eq!(on_cuda(1_000), [SMALL_KERNELS]);
        assert_eq!(on_cuda(100), []);
    }
}
