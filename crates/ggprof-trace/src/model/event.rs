//! What happened, in columns: about 40 bytes per event, so a million events take 40 MB.

use super::backend::BackendIndex;
use super::graph_run::GraphRunId;
use super::narrow::Narrow;
use super::node::NodeId;
use std::ops::Range;

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
    #[inline]
    pub fn end_ns(&self) -> u64 {
        self.start_ns + self.duration_ns
    }

    #[inline]
    pub fn is_op(&self) -> bool {
        self.kind == EventKind::Op
    }
}

/// What neighbouring events have in common: most often those of one split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    pub kind: EventKind,
    pub backend: BackendIndex,
    pub source_backend: Option<BackendIndex>,
    pub split: i32,
    pub graph_run: Option<GraphRunId>,
}

/// The shares of all events' threads.
#[derive(Debug, Clone, Default)]
struct Folds {
    threads: Vec<u16>,
    busy_sum_ns: Narrow,
    wait_sum_ns: Narrow,
    busy_max_ns: Narrow,
}

impl Folds {
    #[inline]
    fn push(&mut self, fold: ThreadFold) {
        // No machine has more.
        self.threads.push(fold.threads.min(u16::MAX.into()) as u16);
        self.busy_sum_ns.push(fold.busy_sum_ns);
        self.wait_sum_ns.push(fold.wait_sum_ns);
        self.busy_max_ns.push(fold.busy_max_ns);
    }

    /// None up to this event.
    fn fill_up(&mut self, length: usize) {
        self.threads.resize(length.max(self.threads.len()), 0);
        self.busy_sum_ns.fill_up(length);
        self.wait_sum_ns.fill_up(length);
        self.busy_max_ns.fill_up(length);
    }

    fn reserve(&mut self, more: usize) {
        self.threads.reserve_exact(more);
        self.busy_sum_ns.reserve(more);
        self.wait_sum_ns.reserve(more);
        self.busy_max_ns.reserve(more);
    }

    #[inline]
    fn get(&self, at: usize) -> Option<ThreadFold> {
        let threads = self.threads.get(at).copied().filter(|&threads| threads > 0)?;
        Some(ThreadFold {
            busy_sum_ns: self.busy_sum_ns.get(at),
            wait_sum_ns: self.wait_sum_ns.get(at),
            busy_max_ns: self.busy_max_ns.get(at),
            threads: threads.into(),
        })
    }
}

/// All events, in the order of the recording: 25 bytes for each, and 14 more for one that ran on
/// threads.
#[derive(Debug, Default)]
pub struct Events {
    /// Each with its first event; by that.
    stretches: Vec<(u32, Stretch)>,
    /// Of each event, its place among the stretches.
    stretch: Vec<u32>,
    start_ns: Vec<u64>,
    duration_ns: Narrow,
    bytes: Narrow,
    node: Vec<NodeId>,
    measured: Vec<Measured>,
    /// Empty until the first event with thread data; then one entry per event.
    folds: Folds,
    /// First start and last end.
    span_ns: Option<(u64, u64)>,
    /// How many events there will be, once that is known.
    expected: usize,
    /// Empty until an event is charged; then one entry per event.
    charged_ns: Narrow,
    /// Per-thread detail, in event order; empty unless it was recorded.
    pub thread_shares: Vec<ThreadShare>,
}

impl Events {
    /// Makes room for so many events, and no more.
    pub fn reserve(&mut self, more: usize) {
        self.expected = self.len() + more;
        self.stretch.reserve_exact(more);
        self.start_ns.reserve_exact(more);
        self.duration_ns.reserve(more);
        self.bytes.reserve(more);
        self.node.reserve_exact(more);
        self.measured.reserve_exact(more);
    }

    /// Appends an event. Its end must not overflow (readers check).
    #[inline]
    pub fn push(&mut self, event: NewEvent) -> EventId {
        let id = EventId(self.len() as u32);
        if !self.charged_ns.is_empty() {
            self.charged_ns.push(event.duration_ns);
        }
        let stretch = Stretch {
            kind: event.kind,
            backend: event.backend,
            source_backend: event.source_backend,
            split: event.split,
            graph_run: event.graph_run,
        };
        if self.stretches.last().is_none_or(|(_, last)| *last != stretch) {
            self.stretches.push((id.0, stretch));
        }
        self.stretch.push(self.stretches.len() as u32 - 1);
        // Readers refuse events whose end would overflow.
        let (start_ns, end_ns) = (event.start_ns, event.start_ns + event.duration_ns);
        let (first_ns, last_ns) = self.span_ns.unwrap_or((start_ns, end_ns));
        self.span_ns = Some((first_ns.min(start_ns), last_ns.max(end_ns)));
        self.start_ns.push(event.start_ns);
        self.duration_ns.push(event.duration_ns);
        self.bytes.push(event.bytes);
        self.node.push(event.node);
        self.measured.push(event.measured);
        match event.threads {
            Some(fold) => {
                if self.folds.threads.len() < id.0 as usize || id.0 == 0 {
                    self.begin_folds(id.0 as usize);
                }
                self.folds.push(fold);
            }
            None if !self.folds.threads.is_empty() => self.folds.push(ThreadFold::default()),
            None => {}
        }
        id
    }

    #[cold]
    fn begin_folds(&mut self, length: usize) {
        self.folds.reserve(self.expected.saturating_sub(self.folds.threads.len()));
        self.folds.fill_up(length);
    }

    pub(super) fn span_ns(&self) -> Option<(u64, u64)> {
        self.span_ns
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.start_ns.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    pub fn get(&self, id: EventId) -> Event {
        let at = id.0 as usize;
        self.event(id, &self.stretches[self.stretch[at] as usize].1)
    }

    /// What is not looked at costs nothing, if this is part of the loop that looks.
    #[inline(always)]
    fn event(&self, id: EventId, stretch: &Stretch) -> Event {
        let at = id.0 as usize;
        let duration_ns = self.duration_ns.get(at);
        Event {
            id,
            kind: stretch.kind,
            node: self.node[at],
            backend: stretch.backend,
            source_backend: stretch.source_backend,
            split: stretch.split,
            graph_run: stretch.graph_run,
            start_ns: self.start_ns[at],
            duration_ns,
            bytes: self.bytes.get(at),
            measured: self.measured[at],
            charged_ns: if self.charged_ns.is_empty() {
                duration_ns
            } else {
                self.charged_ns.get(at)
            },
        }
    }

    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Event> + '_ {
        (0..self.len() as u32).map(move |at| self.get(EventId(at)))
    }

    /// Neighbouring events that have much in common, together. Who needs no more than that need not
    /// look at every event.
    #[inline]
    pub fn stretches(&self) -> impl Iterator<Item = (&Stretch, Range<u32>)> {
        let ends = self.stretches.iter().skip(1).map(|(first, _)| *first);
        let ends = ends.chain([self.len() as u32]);
        self.stretches.iter().zip(ends).map(|((first, stretch), end)| (stretch, *first..end))
    }

    /// One of a stretch's events.
    #[inline(always)]
    pub fn in_stretch(&self, at: u32, stretch: &Stretch) -> Event {
        self.event(EventId(at), stretch)
    }

    /// The events of one kind.
    #[inline]
    pub fn of_kind(&self, kind: EventKind) -> impl Iterator<Item = Event> + '_ {
        let of_kind = self.stretches().filter(move |(stretch, _)| stretch.kind == kind);
        of_kind
            .flat_map(move |(stretch, range)| range.map(move |at| self.event(EventId(at), stretch)))
    }

    pub fn copies(&self) -> impl Iterator<Item = Event> + '_ {
        self.of_kind(EventKind::Copy)
    }

    #[inline]
    pub fn starts(&self) -> &[u64] {
        &self.start_ns
    }

    /// What each event computes or copies.
    #[inline]
    pub fn nodes(&self) -> &[NodeId] {
        &self.node
    }

    #[inline]
    pub fn measured(&self) -> &[Measured] {
        &self.measured
    }

    #[inline]
    pub fn durations(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.duration_ns.iter()
    }

    #[inline]
    pub fn duration(&self, id: EventId) -> u64 {
        self.duration_ns.get(id.0 as usize)
    }

    /// What counts as each event's time; see [`Event::charged_ns`].
    #[inline]
    pub fn charges(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.charge_column().iter()
    }

    #[inline]
    pub fn charge(&self, id: EventId) -> u64 {
        self.charge_column().get(id.0 as usize)
    }

    #[inline]
    fn charge_column(&self) -> &Narrow {
        if self.charged_ns.is_empty() { &self.duration_ns } else { &self.charged_ns }
    }

    /// The folded thread data of an event that ran on threads.
    #[inline]
    pub fn threads(&self, id: EventId) -> Option<ThreadFold> {
        self.folds.get(id.0 as usize)
    }

    /// The most threads that an event ran on; `None` if none says.
    pub fn most_threads(&self) -> Option<u32> {
        self.folds.threads.iter().copied().max().filter(|&most| most > 0).map(u32::from)
    }

    /// What counts as the event's time, in place of its duration.
    pub fn set_charge(&mut self, id: EventId, charged_ns: u64) {
        if self.charged_ns.len() < self.len() {
            self.charged_ns = self.duration_ns.clone();
        }
        self.charged_ns.set(id.0 as usize, charged_ns);
    }

    pub fn set_measured(&mut self, id: EventId, measured: Measured) {
        self.measured[id.0 as usize] = measured;
    }

    /// The graph run of every event, in their order.
    pub fn set_graph_runs(&mut self, runs: impl IntoIterator<Item = Option<GraphRunId>>) {
        let old = std::mem::take(&mut self.stretches);
        for (at, graph_run) in (0..).zip(runs).take(self.stretch.len()) {
            let stretch = Stretch { graph_run, ..old[self.stretch[at as usize] as usize].1 };
            if self.stretches.last().is_none_or(|(_, last)| *last != stretch) {
                self.stretches.push((at, stretch));
            }
            self.stretch[at as usize] = self.stretches.len() as u32 - 1;
        }
    }
}
