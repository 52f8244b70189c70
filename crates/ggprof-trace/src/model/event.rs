//! What happened, in columns: about 40 bytes per event, so a million events take 40 MB.

use super::backend::BackendIndex;
use super::graph_run::GraphRunId;
use super::node::NodeId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EventKind {
    /// A node computed by a backend.
    Op = 0,
    /// Data moved between backends.
    Copy = 1,
}

impl EventKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Op => "OP",
            Self::Copy => "COPY",
        }
    }
}

/// Which clock an event's times come from, and what it saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Measured {
    /// The recording does not say.
    Unknown = 0,
    /// The device's own clock.
    Device = 1,
    /// The host's clock around work that the host does or waits for.
    Host = 2,
    /// The host's clock around a call that only starts work elsewhere.
    HostCall = 3,
    /// The host's clock, ops run one at a time with a wait after each.
    Serialized = 4,
    /// Not measured: worked out from other measurements.
    Modelled = 5,
}

impl Measured {
    pub const ALL: [Self; 6] =
        [Self::Unknown, Self::Device, Self::Host, Self::HostCall, Self::Serialized, Self::Modelled];

    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Device => "device",
            Self::Host => "host",
            Self::HostCall => "host_call",
            Self::Serialized => "serialized",
            Self::Modelled => "modelled",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|measured| measured.name() == name)
    }
}

/// The shares of an op's threads, folded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadFold {
    /// Working time, summed over the threads.
    pub busy_sum_ns: u64,
    /// Time at barriers, summed over the threads.
    pub wait_sum_ns: u64,
    /// Working time of the busiest thread.
    pub busy_max_ns: u64,
    pub threads: u32,
}

/// What one thread did for one op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadShare {
    pub event: EventId,
    pub thread: u32,
    pub start_ns: u64,
    pub duration_ns: u64,
    pub wait_ns: u64,
}

/// An event as a reader hands it over.
#[derive(Debug, Clone, Copy)]
pub struct NewEvent {
    pub kind: EventKind,
    pub node: NodeId,
    pub backend: BackendIndex,
    /// Where a copy came from, if the recording says.
    pub source_backend: Option<BackendIndex>,
    pub split: i32,
    pub graph_run: Option<GraphRunId>,
    pub start_ns: u64,
    pub duration_ns: u64,
    /// Output size of an op, size of the data of a copy.
    pub bytes: u64,
    pub measured: Measured,
    pub threads: Option<ThreadFold>,
}

/// An event as a question reads it.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub id: EventId,
    pub kind: EventKind,
    pub node: NodeId,
    pub backend: BackendIndex,
    pub source_backend: Option<BackendIndex>,
    pub split: i32,
    pub graph_run: Option<GraphRunId>,
    pub start_ns: u64,
    pub duration_ns: u64,
    pub bytes: u64,
    pub measured: Measured,
    /// The time that counts as this event's when times are added up: its duration, less what
    /// it overlaps with other work of its device and less gaps between its kernels.
    pub charged_ns: u64,
}

impl Event {
    /// Readers refuse events whose end would overflow, so this cannot wrap.
    pub fn end_ns(&self) -> u64 {
        self.start_ns + self.duration_ns
    }

    pub fn is_op(&self) -> bool {
        self.kind == EventKind::Op
    }
}

const NO_BACKEND: u16 = u16::MAX;
const NO_RUN: u32 = u32::MAX;

/// All columns cut to one length, so that one check of an index serves them all.
#[derive(Clone, Copy)]
struct Columns<'a> {
    start_ns: &'a [u64],
    duration_ns: &'a [u64],
    bytes: &'a [u64],
    node: &'a [NodeId],
    graph_run: &'a [u32],
    split: &'a [i32],
    backend: &'a [BackendIndex],
    source_backend: &'a [u16],
    kind: &'a [EventKind],
    measured: &'a [Measured],
    charged_ns: &'a [u64],
}

impl Columns<'_> {
    #[inline]
    fn event(&self, id: EventId) -> Event {
        let at = id.0 as usize;
        let (run, source) = (self.graph_run[at], self.source_backend[at]);
        Event {
            id,
            kind: self.kind[at],
            node: self.node[at],
            backend: self.backend[at],
            source_backend: (source != NO_BACKEND).then_some(BackendIndex(source)),
            split: self.split[at],
            graph_run: (run != NO_RUN).then_some(GraphRunId(run)),
            start_ns: self.start_ns[at],
            duration_ns: self.duration_ns[at],
            bytes: self.bytes[at],
            measured: self.measured[at],
            charged_ns: self.charged_ns.get(at).copied().unwrap_or(self.duration_ns[at]),
        }
    }
}

/// All events, in the order of the recording.
#[derive(Debug, Default)]
pub struct Events {
    start_ns: Vec<u64>,
    duration_ns: Vec<u64>,
    bytes: Vec<u64>,
    node: Vec<NodeId>,
    graph_run: Vec<u32>,
    split: Vec<i32>,
    backend: Vec<BackendIndex>,
    source_backend: Vec<u16>,
    kind: Vec<EventKind>,
    measured: Vec<Measured>,
    /// Empty until the first event with thread data; then one entry per event.
    threads: Vec<ThreadFold>,
    /// Empty until an event is charged; then one entry per event.
    charged_ns: Vec<u64>,
    /// Per-thread detail, in event order; empty unless it was recorded.
    pub thread_shares: Vec<ThreadShare>,
}

impl Events {
    /// Appends an event. Its end must not overflow (readers check).
    pub fn push(&mut self, event: NewEvent) -> EventId {
        let id = EventId(self.len() as u32);
        if !self.charged_ns.is_empty() {
            self.charged_ns.push(event.duration_ns);
        }
        self.start_ns.push(event.start_ns);
        self.duration_ns.push(event.duration_ns);
        self.bytes.push(event.bytes);
        self.node.push(event.node);
        self.graph_run.push(event.graph_run.map_or(NO_RUN, |run| run.0));
        self.split.push(event.split);
        self.backend.push(event.backend);
        self.source_backend.push(event.source_backend.map_or(NO_BACKEND, |index| index.0));
        self.kind.push(event.kind);
        self.measured.push(event.measured);
        match event.threads {
            Some(fold) => {
                self.threads.resize(id.0 as usize, ThreadFold::default());
                self.threads.push(fold);
            }
            None if !self.threads.is_empty() => self.threads.push(ThreadFold::default()),
            None => {}
        }
        id
    }

    pub fn len(&self) -> usize {
        self.start_ns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, id: EventId) -> Event {
        self.columns().event(id)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = Event> + '_ {
        let columns = self.columns();
        (0..self.len() as u32).map(move |at| columns.event(EventId(at)))
    }

    fn columns(&self) -> Columns<'_> {
        let length = self.len();
        Columns {
            start_ns: &self.start_ns[..length],
            duration_ns: &self.duration_ns[..length],
            bytes: &self.bytes[..length],
            node: &self.node[..length],
            graph_run: &self.graph_run[..length],
            split: &self.split[..length],
            backend: &self.backend[..length],
            source_backend: &self.source_backend[..length],
            kind: &self.kind[..length],
            measured: &self.measured[..length],
            charged_ns: &self.charged_ns,
        }
    }

    pub fn starts(&self) -> &[u64] {
        &self.start_ns
    }

    pub fn durations(&self) -> &[u64] {
        &self.duration_ns
    }

    /// What counts as each event's time; see [`Event::charged_ns`].
    pub fn charges(&self) -> &[u64] {
        if self.charged_ns.is_empty() { &self.duration_ns } else { &self.charged_ns }
    }

    /// The folded thread data of an event that ran on threads.
    pub fn threads(&self, id: EventId) -> Option<ThreadFold> {
        self.threads.get(id.0 as usize).copied().filter(|fold| fold.threads > 0)
    }

    /// What counts as the event's time, in place of its duration.
    pub fn set_charge(&mut self, id: EventId, charged_ns: u64) {
        let from = self.charged_ns.len();
        self.charged_ns.extend_from_slice(&self.duration_ns[from..]);
        self.charged_ns[id.0 as usize] = charged_ns;
    }

    pub fn set_measured(&mut self, id: EventId, measured: Measured) {
        self.measured[id.0 as usize] = measured;
    }

    pub fn set_graph_run(&mut self, id: EventId, run: Option<GraphRunId>) {
        self.graph_run[id.0 as usize] = run.map_or(NO_RUN, |run| run.0);
    }
}
