//! What the reader of a report must know before believing it: what was seen, what it
//! means, what to do about it.

use crate::clock_words::clock_warning;
use crate::{coverage_words, units};
use ggprof_analysis::{Causality, causality};
use ggprof_trace::{
    Backend, BackendIndex, Coverage, Covered, CoveredHow, CoveredWhy, DeviceType, Dropped,
    EventKind, Extent, Loss, LossKind, Measured, Provenance, Signature, Stopped, Stretch, Trace,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caveat {
    /// Something is missing from the recording or was repaired.
    Loss(Loss),
    /// The file says that another program wrote it.
    ForeignWriter(String),
    /// ggml's profiler gives GPU ops the device's duration but the host's launch time.
    LaunchTimes(Vec<String>),
    /// Backends for which only the times of the host's calls are known.
    HostCalls(Vec<String>),
    /// The same of backends that leave their work to servers.
    RemoteCalls(Vec<String>),
    /// A backend, and how many of its splits the device gave no time for; it timed the others.
    SomeHostCalls(String, u64),
    /// The program was ended in the middle of this many graph runs.
    CutShort(u64),
    /// How many graph runs are left, and of how many.
    Newest(u64, u64),
    /// Only a part of the program's run was to be recorded.
    Part(Extent),
    /// The program ran already when ggprof came; whether it uses CUDA.
    Attached(bool),
    /// Something of the program could not be observed.
    NotObserved(Coverage),
    /// Devices of which every kernel was recorded, one by one.
    EveryKernel(Vec<String>),
    /// Ops that start before their inputs were computed.
    EffectBeforeCause(Causality),
    NoEvents,
    /// Processes of several machines are on one axis of time.
    SeveralClocks(String),
}

/// Everything worth saying about `trace`, gravest first.
pub fn caveats(trace: &Trace) -> Vec<Caveat> {
    let mut caveats: Vec<Caveat> = trace.losses.iter().cloned().map(Caveat::Loss).collect();
    let not_begun = matches!(&trace.provenance, Some(p) if p.extent == Extent::NotBegun);
    if trace.events.is_empty() && !not_begun {
        caveats.push(Caveat::NoEvents);
    }
    if !matches!(trace.writer.as_str(), "ggml" | "ggprof") {
        caveats.push(Caveat::ForeignWriter(trace.writer.clone()));
    }
    if let Some(provenance) = &trace.provenance {
        caveats.extend(of_provenance(provenance, trace.graph_runs.len() as u64));
        caveats.extend(provenance.attached.then(|| Caveat::Attached(uses_cuda(trace))));
    }
    caveats.extend(clock_warning(trace).map(Caveat::SeveralClocks));
    let causality = causality(trace);
    if causality.violations > 0 {
        caveats.push(Caveat::EffectBeforeCause(causality));
    }
    let not_observed = trace.coverage.iter().filter(|coverage| !coverage.is_observed());
    caveats.extend(not_observed.cloned().map(Caveat::NotObserved));
    caveats.extend(of_every_kernel(trace));
    caveats.extend(of_host_calls(trace));
    let launched = ops_by_backend(trace, |measured| measured == Measured::Unknown)
        .filter(|(backend, found, _)| *found > 0 && backend.device_type == DeviceType::Gpu);
    let launched: Vec<String> = launched.map(|(backend, ..)| backend.label().to_owned()).collect();
    if !launched.is_empty() {
        caveats.push(Caveat::LaunchTimes(launched));
    }
    caveats
}

fn of_provenance(provenance: &Provenance, runs: u64) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if provenance.cut_short {
        caveats.push(Caveat::CutShort(provenance.unfinished_runs));
    }
    if let Some(all) = provenance.newest_of {
        caveats.push(Caveat::Newest(runs, all));
    }
    if provenance.extent != Extent::ToTheEnd {
        caveats.push(Caveat::Part(provenance.extent));
    }
    caveats
}

fn uses_cuda(trace: &Trace) -> bool {
    trace.backends.iter().any(|backend| backend.is_cuda())
}

fn of_every_kernel(trace: &Trace) -> Option<Caveat> {
    let is_it = |it: &&Coverage| {
        (it.what, it.how) == (Covered::Ops, CoveredHow::ActivityRecords)
            && it.why != CoveredWhy::InSamples
    };
    let devices = trace.coverage.iter().filter(is_it).map(|it| it.subject.clone());
    let devices: Vec<String> = devices.filter(|label| !is_sampled(trace, label)).collect();
    (!devices.is_empty()).then_some(Caveat::EveryKernel(devices))
}

/// Whether some splits of a backend were timed as a whole: older recordings do not say that otherwise.
fn is_sampled(trace: &Trace, label: &str) -> bool {
    let mut stretches = trace.events.stretches().filter(|(stretch, _)| {
        stretch.kind == EventKind::Op && trace.backend(stretch.backend).label() == label
    });
    stretches.any(|(_, events)| {
        let mut nodes = trace.events.nodes_of(events).iter();
        nodes.any(|node| trace.op_name(*node) == Signature::WHOLE_SPLIT)
    })
}

fn of_host_calls(trace: &Trace) -> Vec<Caveat> {
    let (mut always, mut remote, mut sometimes) = (Vec::new(), Vec::new(), Vec::new());
    let calls = ops_by_backend(trace, |measured| measured == Measured::HostCall);
    for (at, (backend, calls, ops)) in (0..).zip(calls) {
        let label = backend.label().to_owned();
        if calls == seen_on_servers(trace, BackendIndex(at)) || is_done_on_return(trace, backend) {
            continue;
        }
        if calls > 0 && calls == ops && backend.endpoint().is_some() {
            remote.push(label);
        } else if calls > 0 && calls == ops {
            always.push(label);
        } else if calls > 0 {
            sometimes.push(Caveat::SomeHostCalls(label, calls));
        }
    }
    let always = (!always.is_empty()).then_some(Caveat::HostCalls(always));
    let remote = (!remote.is_empty()).then_some(Caveat::RemoteCalls(remote));
    always.into_iter().chain(remote).chain(sometimes).collect()
}

/// An accelerator of the host: it has computed a split when the call returns, so the call's time is the
/// split's. That its ops are not seen is said by coverage.
fn is_done_on_return(trace: &Trace, backend: &Backend) -> bool {
    let is_why = |it: &Coverage| it.why == CoveredWhy::NoGraphOfOneNode;
    let is_said = trace.coverage.iter().any(|it| it.subject == backend.label() && is_why(it));
    is_said && backend.device_type == DeviceType::Accelerator
}

/// Splits of a backend that the recordings of servers show.
fn seen_on_servers(trace: &Trace, backend: BackendIndex) -> u64 {
    trace.remote_runs.iter().filter(|run| run.backend == backend).count() as u64
}

/// Each backend with the number of such ops, and of all.
fn ops_by_backend(
    trace: &Trace,
    is_such: impl Fn(Measured) -> bool,
) -> impl Iterator<Item = (&Backend, u64, u64)> {
    let mut counts = vec![(0, 0); trace.backends.len()];
    let is_op = |stretch: &Stretch| stretch.kind == EventKind::Op;
    for (stretch, events) in trace.events.stretches().filter(|(stretch, _)| is_op(stretch)) {
        let (such, all) = &mut counts[usize::from(stretch.backend.0)];
        *all += events.len() as u64;
        let measured = &trace.events.measured()[events.start as usize..events.end as usize];
        *such += measured.iter().filter(|&&measured| is_such(measured)).count() as u64;
    }
    trace.backends.iter().zip(counts).map(|(backend, (such, all))| (backend, such, all))
}

impl Caveat {
    pub fn sentence(&self) -> String {
        match self {
            Self::Loss(loss) => loss_sentence(loss),
            Self::SeveralClocks(sentence) => sentence.clone(),
            Self::ForeignWriter(writer) => format!(
                "The file says that \"{writer}\" wrote it, not ggml: the figures may mean something else."
            ),
            Self::LaunchTimes(backends) => format!(
                "In a recording of ggml's profiler, ops of {} start when the host launched them: \
                 durations are the device's, but idle time and overlap are estimates.",
                backends.join(", ")
            ),
            Self::HostCalls(backends) => format!(
                "Times of {} are those of the host's calls (SPLIT), which return before the work is \
                 done: how long the device was busy is not known. Record with --serialize to get the \
                 times of single ops.",
                backends.join(", ")
            ),
            Self::RemoteCalls(backends) => format!(
                "Times of {} are those of calls that hand work to a server (SPLIT): what the server \
                 does is not here. Record it, too (`ggprof run -o server.ggprof -- ggml-rpc-server`), \
                 and name both files: `ggprof report client.ggprof server.ggprof`.",
                backends.join(", ")
            ),
            Self::SomeHostCalls(backend, calls) => format!(
                "For {calls} split{} of {backend} only the time of the host's call is known (SPLIT, \
                 measured host_call), which returns before the work is done: the device gave no \
                 times.",
                if *calls == 1 { "" } else { "s" }
            ),
            Self::CutShort(0) => {
                "The program ended without a normal exit; everything it computed is here.".to_owned()
            }
            Self::CutShort(runs) => format!(
                "The program ended without a normal exit in the middle of {runs} graph \
                 run{}: this part is not counted, everything before it is here.",
                if *runs == 1 { "" } else { "s" }
            ),
            Self::Newest(runs, all) => format!(
                "These are the newest {runs} of {all} graph runs: the recording's size was limited."
            ),
            Self::Part(extent) => part_sentence(*extent).to_owned(),
            Self::NotObserved(coverage) => format!(
                "{}: {} were not observed: {}.",
                coverage.subject,
                coverage_words::what(coverage.what),
                coverage_words::why(coverage)
            ),
            Self::EveryKernel(devices) => format!(
                "Every kernel of {} was recorded (--cuda full), which makes launches slower: without \
                 that, devices wait less for the host. --cuda sample tells how long.",
                devices.join(", ")
            ),
            Self::EffectBeforeCause(Causality { checked, violations, worst_ns }) => format!(
                "{violations} of {checked} ops start before their inputs were computed, by up to {}: \
                 the clocks of the backends do not agree better than that.",
                units::duration(*worst_ns as f64)
            ),
            Self::Attached(uses_cuda) => attached_sentence(*uses_cuda),
            Self::NoEvents => {
                "The recording has no events: check that the program computed something while it ran."
                    .to_owned()
            }
        }
    }

    /// Whether the report is about less than what the file should hold.
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Loss(_))
    }
}

fn part_sentence(extent: Extent) -> &'static str {
    match extent {
        Extent::ToTheEnd => "The recording goes on to the program's end.",
        Extent::Stopped => {
            "Recording was stopped, or its window ended, before the program ended: later graph runs \
             are not here."
        }
        Extent::Snapshot => {
            "This is a snapshot of a running program: graph runs under way are not counted."
        }
        Extent::NotBegun => {
            "Nothing was recorded: the program ended before the recording was to begin. Begin it \
             earlier (--start-after, --graphs, or `ggprof ctl start`)."
        }
    }
}

fn attached_sentence(uses_cuda: bool) -> String {
    let graphs = if uses_cuda {
        ". CUDA graphs that it had captured are shown as a whole until it captures them anew"
    } else {
        ""
    };
    format!(
        "ggprof attached to the program while it ran: memory that it had by then is not known, and calls \
         through function pointers that it had (ctypes in Python) are not seen, so its batches may be \
         guesses{graphs}."
    )
}

fn loss_sentence(loss: &Loss) -> String {
    let Loss { kind, count, detail } = loss;
    match kind {
        LossKind::Truncated => format!(
            "The file is cut off ({detail}): the report covers the records before that. \
             Record again if you need the rest."
        ),
        LossKind::DamagedRecord if *count == 1 => format!(
            "1 record was left out because it makes no sense ({detail}). \
             The figures do not count it; record again if it matters."
        ),
        LossKind::DamagedRecord => format!(
            "{count} records were left out because they make no sense (the first: {detail}). \
             The figures do not count them; record again if they matter."
        ),
        LossKind::RepairedText => format!(
            "Names in {count} of the records are not valid text (the first: {detail}): they are \
             shown with replacement characters; the figures are complete."
        ),
        LossKind::Untimed => format!(
            "{count} kernels or copies of a device have no usable time (the first: {detail}) and are \
             not counted."
        ),
        LossKind::Unseen => format!(
            "{count} nodes were computed without being seen (the first: {detail}): the compiler of \
             this ggml inlined some calls, which no hook can see. The time of each such node counts as \
             part of the op before it."
        ),
        LossKind::Dropped(what) => dropped_sentence(*what, *count),
        LossKind::Stopped(why) => stopped_sentence(*why).to_owned(),
        LossKind::DamagedHeader => format!(
            "Parts of the file around the records make no sense ({detail}). \
             The figures cover all records that were found."
        ),
    }
}

/// Which forked children can be recorded.
const CHILDREN_LOST: &str = "a child can be recorded if the program calls `fork` between two graph \
                             runs, has used neither CUDA nor Vulkan, and there is room for a file";

fn dropped_sentence(what: Dropped, count: u64) -> String {
    let (lost, advice) = match what {
        Dropped::Records => ("records had no room in the file", "see why recording stopped"),
        Dropped::GraphRuns => (
            "times there was no room to record a graph run, its end or its ops: too many were \
             computed at once",
            "record with fewer parallel requests",
        ),
        Dropped::ThreadShares => (
            "shares of threads are missing: a graph was larger than a thread's log",
            "waits of its last ops are not counted, and single ops may be missing",
        ),
        Dropped::Threads => (
            "times a thread could not be followed: there were too many, or no memory for their \
             times",
            "record with fewer threads, or raise the memory limit",
        ),
        Dropped::Nodes => {
            ("nodes belong to a graph too large to follow", "please report the program and model")
        }
        Dropped::StrayOps => (
            "ops ran outside of any graph run that was seen and are not counted",
            "they are of graph runs that are missing, if there are any; otherwise please report the \
             program",
        ),
        Dropped::UnclearOps => (
            "ends of ops were seen, but not of which ops: their number does not fit the graph, as \
             where ggml computes several ops together or the program aborts the graph",
            "the times of these graph runs and of the backend in them are right",
        ),
        Dropped::Faults => (
            "faults inside the recorder: what it was recording then is missing",
            "please report it",
        ),
        Dropped::Backends => {
            ("backends could not be followed: there were too many", "record fewer contexts")
        }
        Dropped::Descriptions => {
            ("ops have no description: there were too many different ones", "record a shorter run")
        }
        Dropped::DeviceRecords => (
            "kernels or copies are missing: the vendor's tracing library had no room for them",
            "record a shorter run",
        ),
        Dropped::Children if count == 1 => {
            ("forked child used ggml and was not recorded", CHILDREN_LOST)
        }
        Dropped::Children => ("forked children used ggml and were not recorded", CHILDREN_LOST),
    };
    format!("{count} {lost}; {advice}.")
}

/// Why there is nothing more of a program that goes on.
pub fn stopped_sentence(why: Stopped) -> &'static str {
    match why {
        Stopped::NoSpace => {
            "Recording stopped before the program did: the disk was full or a limit was reached. \
             What was recorded before is complete; free some space to record more."
        }
        Stopped::FileGone => {
            "Recording stopped before the program did: its file could not be extended. What was \
             recorded before is complete; record to another place."
        }
        Stopped::Faults => {
            "The recorder switched itself off after internal faults; the program went on without \
             it. What was recorded before is complete; please report this."
        }
        Stopped::NoMemory => {
            "Recording stopped before the program did: the program had no memory left. What was \
             recorded before is complete; raise the program's limits to record more."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    /// Old recordings do not tell samples from the whole, but their splits do.
    #[test]
    fn samples_are_not_every_kernel() {
        let is_every_kernel = |op: &str| {
            let mut trace = text_fixture::parse(&format!(
                "backend 0 CUDA0 gpu\nrun 0..10\nop CUDA0 {op} 0..10 run=0 measured=device"
            ));
            trace.coverage.push(Coverage {
                subject: "CUDA0".to_owned(),
                what: Covered::Ops,
                how: CoveredHow::ActivityRecords,
                why: CoveredWhy::Untold,
                detail: String::new(),
            });
            caveats(&trace).iter().any(|it| matches!(it, Caveat::EveryKernel(_)))
        };
        assert!(is_every_kernel("MUL_MAT") && !is_every_kernel("SPLIT"));
    }
}
