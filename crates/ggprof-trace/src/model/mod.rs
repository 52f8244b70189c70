//! One recording in memory: tables of things that repeat, columns of things that happen.

mod backend;
mod batch;
mod buffer;
mod copy_direction;
mod coverage;
mod device_work;
mod event;
mod experts;
mod folds;
mod graph_run;
mod loss;
mod narrow;
mod node;
mod node_bytes;
mod op_numbers;
mod placement;
mod process;
mod provenance;
mod remote;
mod sensor;
pub mod shape_text;
mod stretches;
mod strings;
mod tensor;

pub use backend::{Backend, BackendIndex, DeviceType};
pub use batch::{Batch, BatchFunction, BatchId, BatchSequence, ContextChange, ContextChangeKind};
pub use buffer::{Buffer, BufferUsage, FreeMemory};
pub use copy_direction::CopyDirection;
pub use coverage::{Coverage, Covered, CoveredHow, CoveredWhy};
pub use device_work::{DeviceWork, HostTask, TaskKind, WorkKind, WorkOrigin};
pub use event::{
    Event, EventId, EventKind, Events, Measured, NewEvent, NewInStretch, Stretch, ThreadFold,
    ThreadShare,
};
pub use experts::{ExpertUse, ExpertUses};
pub use graph_run::{Gap, GraphRun, GraphRunId};
pub use loss::{Dropped, Loss, LossKind, Stopped};
pub use node::{Member, Node, NodeId, NodeTable, Origin, Signature, SignatureId};
pub use op_numbers::OpNumbers;
pub use placement::{Answer, CopyEnds, MemoryIndex, MemoryKind, Placement};
pub use process::{Process, ProcessClock, ProcessIndex};
pub use provenance::{DayClock, Extent, Ggml, Provenance};
pub use remote::{GraphCall, RemoteLink, RemoteRun, Transfer};
pub use sensor::{Quantity, Sensor};
pub use strings::{StringId, StringTable};
pub use tensor::{Shape, Source, Tensor, TypeInfo, TypeTable};

use std::ops::Range;

/// More backends than any machine has; a file with more of them is not a recording, and must
/// not make every look-up slow.
const MOST_BACKENDS: u16 = 1024;

/// A recording: what ran where, when, and what is missing from it.
#[derive(Debug, Default)]
pub struct Trace {
    /// Who wrote the recording, as the file says it ("ggml", "ggprof").
    pub writer: String,
    /// The format version the file states, if it states one.
    pub version: Option<u64>,
    pub strings: StringTable,
    pub types: TypeTable,
    pub op_numbers: OpNumbers,
    pub backends: Vec<Backend>,
    pub nodes: NodeTable,
    pub events: Events,
    /// What devices did for the events, in the order of the events.
    pub device_work: Vec<DeviceWork>,
    /// One for each piece of device work that is still to be charged; none where the recording
    /// says what each is charged with.
    pub work_origins: Vec<WorkOrigin>,
    pub host_tasks: Vec<HostTask>,
    /// Memory for tensors, in the order in which it was had.
    pub buffers: Vec<Buffer>,
    /// What devices said of their memory, the last of each.
    pub free_memory: Vec<FreeMemory>,
    /// The kinds of memory that copies and placements speak of.
    pub memory_kinds: Vec<MemoryKind>,
    /// By node and backend; none where nodes were not asked about.
    pub placements: Vec<Placement>,
    /// What is known of copies beside their events, in the order of the events.
    pub copy_ends: Vec<CopyEnds>,
    /// Choices of experts that the processor read.
    pub expert_uses: ExpertUses,
    /// What was read of the machine's devices meanwhile.
    pub sensors: Vec<Sensor>,
    pub graph_runs: Vec<GraphRun>,
    /// What the program handed to libllama, by start; empty where its calls were not seen.
    pub batches: Vec<Batch>,
    /// By time.
    pub context_changes: Vec<ContextChange>,
    /// Whether the graph runs were recorded or worked out from the order of the records.
    pub graph_runs_inferred: bool,
    /// It is a part of what was recorded: others were left out on purpose.
    pub is_part: bool,
    /// The graph runs that were left out then, each until its results were there: what the others are
    /// depends on them.
    pub left_out: Vec<GraphRun>,
    /// Of a part: what devices timed outside of it, for estimates of what they did not time in it. Their
    /// ids go on behind those of the events.
    pub elsewhere: Vec<Event>,
    pub losses: Vec<Loss>,
    /// `None` for recordings whose writer notes nothing of the kind.
    pub provenance: Option<Provenance>,
    pub coverage: Vec<Coverage>,
    /// Of a trace that was made of several recordings; empty for one.
    pub processes: Vec<Process>,
    /// What libraries with ggml's RPC sent and received, by start.
    pub transfers: Vec<Transfer>,
    /// Of one recording: calls whose other half another recording may have, by start.
    pub graph_calls: Vec<GraphCall>,
    /// Of a trace that was made of several recordings: what one process computed for another, by the
    /// start of the client's call.
    pub remote_runs: Vec<RemoteRun>,
    /// The same: who worked for whom.
    pub remote_links: Vec<RemoteLink>,
}

impl Trace {
    /// An event of the recording, or one that a part of it keeps for estimates.
    pub fn event(&self, id: EventId) -> Event {
        match (id.0 as usize).checked_sub(self.events.len()) {
            Some(place) => self.elsewhere[place],
            None => self.events.get(id),
        }
    }

    /// The text of an interned string.
    #[inline]
    pub fn text(&self, id: StringId) -> &str {
        self.strings.get(id)
    }

    #[inline]
    pub fn node(&self, id: NodeId) -> Node {
        self.nodes.node(id)
    }

    #[inline]
    pub fn signature(&self, id: NodeId) -> &Signature {
        self.nodes.signature(self.nodes.node(id).signature)
    }

    /// The op's name as ggml spells it: `MUL_MAT`, `copy_H2D`.
    #[inline]
    pub fn op_name(&self, id: NodeId) -> &str {
        self.text(self.signature(id).op)
    }

    /// Of the copy that a node stands for.
    #[inline]
    pub fn direction(&self, copy: NodeId) -> CopyDirection {
        self.signature(copy).copied.unwrap_or(CopyDirection::Unknown)
    }

    #[inline]
    pub fn tensor_name(&self, id: NodeId) -> Option<&str> {
        self.nodes.node(id).tensor_name.map(|name| self.text(name))
    }

    pub fn backend(&self, index: BackendIndex) -> &Backend {
        &self.backends[usize::from(index.0)]
    }

    /// The backend with the scheduler's number `id`, made up if no backend table named it.
    pub fn backend_with_id(&mut self, id: i32) -> Option<BackendIndex> {
        if let Some(at) = self.backends.iter().position(|backend| backend.id == id) {
            return Some(BackendIndex(at as u16));
        }
        let index = Some(self.backends.len() as u16).filter(|&index| index < MOST_BACKENDS)?;
        self.backends.push(Backend::unnamed(id));
        Some(BackendIndex(index))
    }

    /// Adds to the count of a loss, keeping the first detail seen.
    pub fn lose(&mut self, kind: LossKind, detail: impl FnOnce() -> String) {
        self.lose_many(kind, 1, detail);
    }

    pub fn lose_many(&mut self, kind: LossKind, count: u64, detail: impl FnOnce() -> String) {
        match self.losses.iter_mut().find(|loss| loss.kind == kind) {
            Some(loss) => loss.count = loss.count.saturating_add(count),
            None => self.losses.push(Loss { kind, count, detail: detail() }),
        }
    }

    /// What devices did for an event; empty where that was not recorded.
    pub fn work_for(&self, event: EventId) -> &[DeviceWork] {
        let places = self.places_of_work(event);
        &self.device_work[places.start as usize..places.end as usize]
    }

    /// Where that stands among all device work.
    #[inline]
    pub fn places_of_work(&self, event: EventId) -> Range<u32> {
        if self.device_work.is_empty() {
            return 0..0;
        }
        let from = self.device_work.partition_point(|work| work.event < event);
        let own = self.device_work[from..].partition_point(|work| work.event == event);
        from as u32..(from + own) as u32
    }

    pub fn memory_kind(&self, index: MemoryIndex) -> &MemoryKind {
        &self.memory_kinds[usize::from(index.0)]
    }

    /// Why a node is where it was computed; `None` where that is not known.
    pub fn placement(&self, node: NodeId, backend: BackendIndex) -> Option<&Placement> {
        let key = |placement: &Placement| (placement.node, placement.backend);
        let at = self.placements.binary_search_by_key(&(node, backend), key).ok()?;
        self.placements.get(at)
    }

    /// What is known of a copy beside its event.
    pub fn ends_of(&self, copy: EventId) -> Option<&CopyEnds> {
        let at = self.copy_ends.binary_search_by_key(&copy, |ends| ends.event).ok()?;
        self.copy_ends.get(at)
    }

    /// Whether a backend belongs to a process that computes for another one.
    pub fn is_of_server(&self, index: BackendIndex) -> bool {
        let process = self.backend(index).process;
        self.remote_links.iter().any(|link| Some(link.server) == process)
    }

    /// Whether a process ran on a machine, or had servers there. All that was recorded did, where there is
    /// one process.
    pub fn uses_machine(&self, process: Option<ProcessIndex>, machine: u16) -> bool {
        let is_on_it = |process: ProcessIndex| {
            let process = self.processes.get(usize::from(process.0));
            process.is_none_or(|process| process.machine == machine)
        };
        let Some(process) = process else { return true };
        let mut links = self.remote_links.iter();
        is_on_it(process) || links.any(|link| link.client == process && is_on_it(link.server))
    }

    /// The machine of a process, or the first one's where there is no process or one that is not known.
    pub fn machine_of(&self, process: Option<ProcessIndex>) -> u16 {
        let known = process.and_then(|process| self.processes.get(usize::from(process.0)));
        known.or(self.processes.first()).map_or(0, |process| process.machine)
    }

    /// Whether its recordings were made on several machines.
    pub fn has_machines(&self) -> bool {
        self.processes.iter().any(|process| process.machine != self.processes[0].machine)
    }

    /// Whether a backend only stands for a server whose recording is here, too.
    pub fn stands_for_server(&self, index: BackendIndex) -> bool {
        self.remote_runs.iter().any(|run| run.backend == index)
    }

    /// Nanoseconds since 1970 at a moment of this recording; `None` where that is not known.
    pub fn unix_ns(&self, ns: u64) -> Option<u64> {
        let anchors = &self.provenance.as_ref()?.clock_anchors;
        let before = anchors.partition_point(|(at_ns, _)| *at_ns <= ns).max(1) - 1;
        let (at_ns, unix_ns) = *anchors.get(before)?;
        Some(unix_ns.wrapping_add(ns.wrapping_sub(at_ns)))
    }

    /// The moment of this recording at so many nanoseconds since 1970.
    pub fn moment(&self, unix_ns: u64) -> Option<u64> {
        let anchors = &self.provenance.as_ref()?.clock_anchors;
        let before = anchors.partition_point(|(_, at_unix_ns)| *at_unix_ns <= unix_ns).max(1) - 1;
        let (at_ns, at_unix_ns) = *anchors.get(before)?;
        let since = i128::from(unix_ns) - i128::from(at_unix_ns) + i128::from(at_ns);
        Some(u64::try_from(since).unwrap_or(0))
    }

    /// Which graph run of the program it is, counted from 1: what every report calls it.
    pub fn run_number(&self, run: GraphRunId) -> u64 {
        let number = self.graph_runs.get(run.0 as usize).and_then(|run| run.number);
        number.unwrap_or(u64::from(run.0) + 1)
    }

    /// First start and last end over all events, and the graph runs and calls of libllama that they are
    /// part of; `None` without events.
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        let calls =
            self.graph_runs.iter().filter_map(|run| self.batches.get(run.batch?.0 as usize));
        let calls = calls.map(|call| (call.start_ns, call.end_ns.unwrap_or(0)));
        let runs = self.graph_runs.iter().map(|run| (run.start_ns, run.end_ns));
        Some(
            runs.chain(calls)
                .fold(self.events.span_ns()?, |all, it| (all.0.min(it.0), all.1.max(it.1))),
        )
    }
}
