//! Coverage in words.

use ggprof_trace::{Coverage, Covered, CoveredHow, CoveredWhy};

pub(crate) fn what(what: Covered) -> &'static str {
    match what {
        Covered::Splits => "splits",
        Covered::Ops => "ops",
        Covered::BarrierWaits => "barrier waits",
        Covered::Fusions => "fusions",
        Covered::AsyncCopies => "asynchronous copies",
        Covered::Layout => "struct layouts",
        Covered::Copies => "copies",
        Covered::Kernels => "kernels",
        Covered::Memory => "buffers",
        Covered::Placement => "placement",
        Covered::Experts => "experts",
    }
}

pub(crate) fn how(how: CoveredHow) -> &'static str {
    match how {
        CoveredHow::Not => "not seen",
        CoveredHow::FunctionTable => "function table",
        CoveredHow::GotSlot => "GOT slot",
        CoveredHow::Serialized => "serialized",
        CoveredHow::Probed => "probed",
        CoveredHow::AbortCallback => "abort callback, first thread only",
        CoveredHow::SymbolName => "symbol name",
        CoveredHow::DeviceTimestamps => "timestamps of the device",
        CoveredHow::ActivityRecords => "activity records of the device",
        CoveredHow::InlineHook => "function entry",
        CoveredHow::NodeByNode => "node by node",
        CoveredHow::Asked => "ggml was asked",
    }
}

/// Whose clock the times come from.
pub(crate) fn clock(part: &Coverage) -> &'static str {
    match (part.what, part.how) {
        (Covered::Layout, _) => "",
        (_, CoveredHow::DeviceTimestamps | CoveredHow::ActivityRecords) => "the device",
        (_, CoveredHow::Serialized) => "the host, one op at a time",
        (_, CoveredHow::AbortCallback) => "the host, first thread",
        (Covered::Ops, _) => "the host, every thread",
        _ => "the host",
    }
}

/// What the agent sets for every kernel, if the program's user has not.
macro_rules! shorter_graphs {
    () => {
        "GGML_CUDA_GRAPH_CHUNK_SIZE=64"
    };
}

/// Why something is not observed, or not in a better way; empty if there is nothing to say.
pub(crate) fn why(coverage: &Coverage) -> &str {
    match coverage.why {
        CoveredWhy::NotAnnounced => {
            "the library does not announce its ops by a call that can be seen"
        }
        CoveredWhy::TooManyLibraries => "too many libraries at once",
        CoveredWhy::HookedHalfWay => "hooking the library failed half-way",
        CoveredWhy::SlotsNotWritable => "the library's call slots could not be written",
        CoveredWhy::CallsInlined => "the compiler inlined the calls that announce ops",
        CoveredWhy::FieldsUnknown => "the layout of this ggml's tensors and graphs is not known",
        CoveredWhy::CopiesCalledDirectly => "ggml calls its own copy directly",
        CoveredWhy::BuffersMadeDirectly => "ggml makes its own buffers by direct calls",
        CoveredWhy::FreesNotSeen => "ggml frees its own buffers by direct calls",
        CoveredWhy::NothingToAsk => "this ggml cannot be asked about nodes",
        CoveredWhy::NoGraphOfOneNode => {
            "this ggml has no function that is known to make a graph of one node"
        }
        CoveredWhy::NoBarrierCalls => "the library has no call of ggml_barrier",
        CoveredWhy::BarrierInlined => {
            "the compiler put ggml_barrier in line, so waits count as part of the ops"
        }
        CoveredWhy::NoOpFunctions => "the library shows no op functions",
        CoveredWhy::FirstThreadOnly => {
            "only the first thread is seen, and its waits count as part of the ops"
        }
        CoveredWhy::VulkanOff => "timing Vulkan devices is off",
        CoveredWhy::AttachedTooLate => {
            "the program had opened it before ggprof attached, which is too late for its own times"
        }
        CoveredWhy::LayerNotLoaded => "the Vulkan loader did not load the agent's layer",
        CoveredWhy::DeviceLost => "the device was lost",
        CoveredWhy::WholeSplitsOnly => "only the time of whole splits was asked for",
        CoveredWhy::InSamples => "sample",
        CoveredWhy::ShorterGraphs => shorter_graphs!(),
        CoveredWhy::GraphsNotShortened => {
            concat!(shorter_graphs!(), " was set, but this ggml does not know it")
        }
        CoveredWhy::GraphsPerhapsShortened => concat!(shorter_graphs!(), " was set"),
        CoveredWhy::GraphsOff => "GGML_CUDA_DISABLE_GRAPHS is set",
        CoveredWhy::Untold
        | CoveredWhy::EntryRefused
        | CoveredWhy::LayoutNotFound
        | CoveredWhy::DeviceWithoutTimes
        | CoveredWhy::TracingRefused
        | CoveredWhy::AskingFailed
        | CoveredWhy::LeftToLibrary => &coverage.detail,
    }
}
