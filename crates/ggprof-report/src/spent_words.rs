//! What time was spent on, in words.

use ggprof_analysis::{Budget, ModelPart, Spent};
use ggprof_trace::{BackendIndex, CopyDirection, Trace};

/// What the time of a phase is counted for.
pub(crate) fn unit(budget: &Budget) -> &'static str {
    if budget.tokens > 0 { "token" } else { "graph run" }
}

pub(crate) fn key(spent: Spent) -> &'static str {
    match spent {
        Spent::Computing { .. } => "computing",
        Spent::UnequalThreads => "unequal_threads",
        Spent::Barriers => "barriers",
        Spent::Copying(CopyDirection::HostToDevice) => "copying_host_to_device",
        Spent::Copying(CopyDirection::DeviceToHost) => "copying_device_to_host",
        Spent::Copying(CopyDirection::DeviceToDevice) => "copying_device_to_device",
        Spent::Copying(CopyDirection::HostToHost) => "copying_host_to_host",
        Spent::Copying(CopyDirection::Unknown) => "copying",
        Spent::CompilingPipelines => "compiling",
        Spent::OtherRuns => "other_runs",
        Spent::Launching { .. } => "launching",
        Spent::FirstUse { .. } => "first_use",
        Spent::WaitingForDevice => "waiting_for_device",
        Spent::Scheduling => "scheduling",
        Spent::UnseenRun => "unseen_run",
        Spent::BuildingGraphs => "building_graphs",
        Spent::Program => "program",
        Spent::BetweenRuns => "between_runs",
    }
}

/// The backend that something went to, or that waited.
pub(crate) fn backend(spent: Spent) -> Option<BackendIndex> {
    match spent {
        Spent::Computing { backend, .. }
        | Spent::Launching { backend }
        | Spent::FirstUse { backend } => Some(backend),
        _ => None,
    }
}

pub(crate) fn backend_name(trace: &Trace, spent: Spent) -> Option<&str> {
    backend(spent).map(|backend| trace.backend(backend).label())
}

pub(crate) fn part(spent: Spent) -> Option<ModelPart> {
    match spent {
        Spent::Computing { part, .. } => Some(part),
        _ => None,
    }
}

pub(crate) fn part_name(part: ModelPart) -> &'static str {
    match part {
        ModelPart::Attention => "attention",
        ModelPart::FeedForward => "feed-forward",
        ModelPart::Experts => "experts",
        ModelPart::Recurrent => "recurrent",
        ModelPart::Output => "output",
        ModelPart::Rest => "the rest",
        ModelPart::Undivided => "not told apart",
    }
}

pub(crate) fn words(trace: &Trace, spent: Spent) -> String {
    let name = backend_name(trace, spent).unwrap_or_default();
    match spent {
        Spent::Computing { part: ModelPart::Undivided, .. } => format!("computing on {name}"),
        Spent::Computing { part, .. } => format!("computing on {name}: {}", part_name(part)),
        Spent::Launching { .. } => format!("{name} waiting for the host to launch work"),
        Spent::FirstUse { .. } => format!("{name} waiting for kernels to be loaded or compiled"),
        Spent::Copying(direction) => {
            format!("copies {}while nothing computes", direction_words(direction))
        }
        other => plain_words(other).to_owned(),
    }
}

fn direction_words(direction: CopyDirection) -> &'static str {
    match direction {
        CopyDirection::HostToDevice => "to the device ",
        CopyDirection::DeviceToHost => "from the device ",
        CopyDirection::DeviceToDevice => "between devices ",
        CopyDirection::HostToHost => "in the host's memory ",
        CopyDirection::Unknown => "",
    }
}

fn plain_words(spent: Spent) -> &'static str {
    match spent {
        Spent::UnequalThreads => "threads waiting for the slowest one in an op",
        Spent::Barriers => "threads at barriers between ops",
        Spent::CompilingPipelines => "compiling pipelines",
        Spent::OtherRuns => "other graphs of the program, such as another context's",
        Spent::WaitingForDevice => "waiting for a device that was not seen to compute",
        Spent::Scheduling => "ggml's scheduler, before and between ops",
        Spent::UnseenRun => "graph runs whose ops were not recorded",
        Spent::BuildingGraphs => {
            "libllama outside of graph runs: building graphs, preparing batches"
        }
        Spent::Program => "the program between calls: sampling, grammar, text, I/O",
        Spent::BetweenRuns => "between graph runs: building graphs, sampling, I/O",
        Spent::Computing { .. }
        | Spent::Launching { .. }
        | Spent::FirstUse { .. }
        | Spent::Copying(_) => "",
    }
}
