//! What was found, in one sentence of the user's words.

use crate::units;
use ggprof_analysis::findings::{BusyDevice, What, WhichHostOps};
use ggprof_analysis::{Direction, copies::TensorClass};
use ggprof_trace::{BackendIndex, Trace};

pub(super) fn of(trace: &Trace, what: &What) -> String {
    let name = |backend: &BackendIndex| trace.backend(*backend).label();
    match what {
        What::HostOps { device, which, ops, .. } => {
            let op = ops.first().map_or("", |op| trace.text(op.op));
            host_ops(which, op, name(device))
        }
        What::ManySplits { per_run, .. } => {
            format!("each graph is cut into {per_run:.0} pieces, with copies in between")
        }
        What::ExposedCopies { direction, .. } => {
            format!("nothing computes while data is copied {}", towards(*direction))
        }
        What::SlowCopies { gb_per_s, best_gb_per_s, .. } => format!(
            "copies to the device run at {}, where {} is possible",
            units::bandwidth(*gb_per_s),
            units::bandwidth(*best_gb_per_s)
        ),
        What::CopiedWeights { copies, bytes_per_run, .. } => {
            let is_experts = copies.iter().all(|row| row.class == TensorClass::Experts);
            let what = if is_experts { "experts" } else { "weights" };
            format!(
                "{} of {what} are copied to the device again for every graph run",
                units::bytes(*bytes_per_run as f64)
            )
        }
        What::Program { is_guess: false, .. } => {
            "the program itself works or waits between two calls of libllama".to_owned()
        }
        What::Program { .. } => "nothing is computed between two graph runs".to_owned(),
        What::Barriers { threads, .. } => {
            format!("{threads} threads wait for each other more than for their work")
        }
        What::UnequalThreads { threads, .. } => {
            format!("one of {threads} threads is slower, and the others wait for it")
        }
        What::TooManyThreads { threads, processors: Some(processors), .. } => {
            format!("{threads} threads compute on {processors} processors")
        }
        What::TooManyThreads { threads, .. } => {
            format!("{threads} threads are more than the memory can feed")
        }
        What::SmallKernels { backend, .. } => {
            format!("{} waits for the host between small kernels", name(backend))
        }
        What::GraphsOff { backend, .. } => {
            format!("{} runs without CUDA graphs and waits for each launch", name(backend))
        }
        What::PromptAgain { tokens, .. } => format!(
            "prompts are processed again: {} tokens had been computed before",
            units::count((*tokens).into())
        ),
        What::Depth { step: Some((before, after)), .. } => format!(
            "attention slows down at once between {} and {} cells of context",
            before.cells, after.cells
        ),
        What::Depth { .. } => "attention takes longer as the context grows".to_owned(),
        What::Draft { .. } => "the draft model costs more time than its tokens save".to_owned(),
        What::SlowClock { shown } => format!(
            "the clock of {} is at {} of its highest",
            shown.device,
            units::share(shown.median_hz as f64 / shown.highest_hz as f64)
        ),
        What::FirstUse { .. } => {
            "kernels are compiled or loaded when they are first used".to_owned()
        }
        What::Bubbles { devices } => bubbles(trace, devices),
        What::SmallBatches { tokens_per_run, .. } => {
            format!("the prompt is computed {tokens_per_run} tokens at a time")
        }
        What::RoundTrips { servers: 1, .. } => {
            "the network to the server takes the time".to_owned()
        }
        What::RoundTrips { servers, .. } => {
            format!("the network to {servers} servers takes the time")
        }
        What::GraphSentAgain { .. } => {
            "the graph is sent to the servers again each time, although it stays the same"
                .to_owned()
        }
        What::SlowServer { server, .. } => {
            format!("{} is slower than the other servers", trace.backend(*server).name)
        }
    }
}

fn host_ops(which: &WhichHostOps, op: &str, device: &str) -> String {
    match which {
        WhichHostOps::Layers { first, last, count, of } => {
            let layers = match (count, last - first + 1 == *count) {
                (1, _) => format!("layer {first} of {of}"),
                (_, true) => format!("layers {first} to {last} of {of}"),
                (_, false) => format!("{count} of {of} layers"),
            };
            format!("the CPU computes {layers} while {device} waits")
        }
        WhichHostOps::Experts { layers, of } => {
            format!("the CPU computes the experts of {layers} of {of} layers while {device} waits")
        }
        WhichHostOps::Output => format!("the CPU computes the output while {device} waits"),
        WhichHostOps::Op { layers: 1 } => {
            format!("the CPU computes {op} in a layer that {device} computes otherwise")
        }
        WhichHostOps::Op { layers } => {
            format!("the CPU computes {op} in {layers} layers that {device} computes otherwise")
        }
    }
}

fn bubbles(trace: &Trace, devices: &[BusyDevice]) -> String {
    let busiest = devices.iter().map(|device| device.share).fold(0.0, f64::max);
    let idle = devices.iter().find(|device| device.share < 0.05 * busiest);
    match idle {
        Some(device) => format!("{} has nothing to do", trace.backend(device.backend).label()),
        None => format!("{} devices take turns instead of working together", devices.len()),
    }
}

fn towards(direction: Direction) -> &'static str {
    match direction {
        Direction::HostToDevice => "to the device",
        Direction::DeviceToHost => "from the device",
        Direction::DeviceToDevice => "between devices",
        Direction::HostToHost | Direction::Unknown => "in the host's memory",
    }
}
