//! How one knows: the ops, tensors and times behind a finding.

use crate::units;
use ggprof_analysis::Budget;
use ggprof_analysis::copies::HostMemory;
use ggprof_analysis::findings::{CopyRow, HostOp, RateFrom, What};
use ggprof_analysis::placement::{Offload, Reason};
use ggprof_trace::{Trace, shape_text};

/// More of them would hide the first.
const SHOWN: usize = 3;

pub(super) fn of(trace: &Trace, budget: &Budget, what: &What) -> String {
    let each = |ns: u64| units::duration(ns as f64 / budget.units() as f64);
    let ns = |ns: u64| units::duration(ns as f64);
    match what {
        What::HostOps { device, ops, around_ns, on_device_ns, .. } => {
            let longest = ops.iter().take(SHOWN).map(|op| host_op(trace, budget, op));
            let longest: Vec<String> = longest.collect();
            let device = trace.backend(*device).label();
            let there = on_device_ns
                .map_or_else(String::new, |ns| format!("; {device} would need about {}", each(ns)));
            let around = match around_ns {
                0 => String::new(),
                _ => format!("; changing sides takes {}", each(*around_ns)),
            };
            format!("{}{around}{there}", longest.join(", "))
        }
        What::ManySplits { per_run, devices } => format!(
            "{per_run:.1} splits a graph run, where {} are usual with {devices} device(s)",
            devices + 2
        ),
        What::ExposedCopies { copies, .. } => rows(copies, budget),
        What::SlowCopies { copies, best, .. } => {
            let best = match best {
                RateFrom::Peaks => "measured on this machine, pinned memory",
                RateFrom::BestSeen => "the best of this recording",
            };
            format!("{}; the rate to reach: {best}", rows(copies, budget))
        }
        What::CopiedWeights { copies, gb_per_s, .. } => {
            let rate =
                gb_per_s.map_or_else(String::new, |it| format!(" at {}", units::bandwidth(it)));
            format!("{}{rate}", rows(copies, budget))
        }
        What::Program { per_token_ns, longest_ns, is_guess } => {
            let from = if *is_guess { "a graph run" } else { "a call" };
            let (each, longest) = (ns(*per_token_ns), ns(*longest_ns));
            format!("{each} from the end of {from} to the next, {longest} at most")
        }
        What::Barriers { between_ns, in_ops_ns, .. } => format!(
            "{} at barriers between ops, {} in ops that are too small to share",
            each(*between_ns),
            each(*in_ops_ns)
        ),
        What::UnequalThreads { worst, worst_share, others, .. } => {
            let others = others.map_or_else(String::new, |others| {
                format!("; other programs used {others:.1} processors meanwhile")
            });
            let share = units::share(*worst_share);
            format!("in {} the threads wait {share} of the time{others}", trace.text(*worst))
        }
        What::TooManyThreads { knee: Some(knee), .. } => {
            format!("{knee} threads already read as fast as this machine can")
        }
        What::TooManyThreads { .. } => "a thread that has no processor keeps all others \
             waiting at the next barrier"
            .to_owned(),
        What::SmallKernels { kernels_per_run, kernel_ns, gap_ns, .. } => format!(
            "{kernels_per_run} kernels a graph run, {} each, {} between two",
            ns(*kernel_ns),
            ns(*gap_ns)
        ),
        What::GraphsOff { kernels_per_run, gap_ns, .. } => format!(
            "{kernels_per_run} kernels a graph run with {} between two; in a CUDA graph it is one \
             microsecond",
            ns(*gap_ns)
        ),
        What::PromptAgain { requests, tokens, of_tokens } => format!(
            "{requests} request(s) began at position 0, and {} of their {} tokens were in the context \
             before",
            units::count((*tokens).into()),
            units::count((*of_tokens).into())
        ),
        What::Depth { from, to, ns_per_1000, .. } => format!(
            "{} a token with {} cells of context, {} with {}: {} for each 1,000",
            ns(from.ns),
            from.cells,
            ns(to.ns),
            to.cells,
            units::duration(*ns_per_1000)
        ),
        What::Draft { draft_ns_per_token, target_step_ns, tokens_per_step } => format!(
            "{} of drafting a token; a step of the model takes {} and keeps {tokens_per_step:.2} tokens",
            ns(*draft_ns_per_token),
            ns(*target_step_ns)
        ),
        What::SlowClock { shown } => format!(
            "{} at the median of the phase, {} at most",
            units::frequency(shown.median_hz as f64),
            units::frequency(shown.highest_hz as f64)
        ),
        What::FirstUse { pipelines, longest: Some((name, longest_ns)), .. } => format!(
            "{pipelines} pipelines were compiled, {} the longest ({})",
            trace.text(*name),
            ns(*longest_ns)
        ),
        What::FirstUse { .. } => {
            "the device waits before kernels that were not used before".to_owned()
        }
        What::Bubbles { devices } => {
            let busy = devices.iter().map(|device| {
                let name = trace.backend(device.backend).label();
                format!("{name} computes {} of the time", units::share(device.share))
            });
            busy.collect::<Vec<_>>().join(", ")
        }
        What::SmallBatches { runs, bytes_per_run, gb_per_s, .. } => format!(
            "{runs} graph runs, each of which reads {} ({})",
            units::bytes(*bytes_per_run as f64),
            units::bandwidth(*gb_per_s)
        ),
        What::RoundTrips {
            steps_per_run,
            round_trips_per_run,
            bytes_per_run,
            wire_ns_per_step,
            ..
        } => {
            let each = units::duration(*wire_ns_per_step as f64);
            let steps =
                format!("{steps_per_run:.0} steps of servers a graph run, {each} on the wire each");
            match *bytes_per_run {
                0 => steps,
                bytes => format!(
                    "{steps}; {round_trips_per_run:.0} answers waited for and {} a graph run",
                    units::bytes(bytes as f64)
                ),
            }
        }
        What::GraphSentAgain { bytes_per_step, steps_per_run } => format!(
            "{} besides the tensors for each of {steps_per_run:.0} graphs a graph run",
            units::bytes(*bytes_per_step as f64)
        ),
        What::SlowServer { layer_ns, layers, best, best_layer_ns, .. } => format!(
            "each of its {layers} layers takes {}, where {} takes {}",
            units::duration(*layer_ns as f64),
            trace.backend(*best).name,
            units::duration(*best_layer_ns as f64)
        ),
    }
}

/// `MUL_MAT of ffn_up-0 [4096, 14336] q8_0 x [4096] f32: 3.2 ms (its weight is in RAM)`.
fn host_op(trace: &Trace, budget: &Budget, op: &HostOp) -> String {
    let event = trace.events.get(op.example);
    let tensor = trace.tensor_name(event.node).unwrap_or("");
    let shape = shape_text::sources(trace.signature(event.node), &trace.types);
    let each = units::duration(op.ns as f64 / budget.units() as f64);
    let why = match op.reason {
        Reason::Unsupported => ", which the device does not support",
        Reason::WeightOnHost { offload: Offload::Declined, .. } => {
            ", its weight in the host's memory and the batch too small to copy that"
        }
        Reason::WeightOnHost { .. } => ", its weight in the host's memory",
        Reason::CacheOnHost { .. } => ", the cache in the host's memory",
        _ => "",
    };
    format!("{} ({tensor} {shape}{why}) {each}", trace.text(op.op))
}

fn rows(copies: &[CopyRow], budget: &Budget) -> String {
    let words = copies.iter().take(SHOWN).map(|row| {
        let more = match row.tensors {
            0 | 1 => String::new(),
            more => format!(" and {} more", more - 1),
        };
        let memory = match row.memory {
            HostMemory::Pinned => " of pinned memory",
            HostMemory::Pageable => " of pageable memory",
            HostMemory::Unknown => "",
        };
        format!(
            "{}{more}: {}{memory} a graph run, {} of it exposed",
            row.tensor,
            units::bytes(row.bytes as f64 / budget.runs.max(1) as f64),
            units::duration(row.exposed_ns as f64 / budget.runs.max(1) as f64)
        )
    });
    words.collect::<Vec<_>>().join(", ")
}
