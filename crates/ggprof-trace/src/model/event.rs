//! What happened, in columns: less than 30 bytes per event, so a million events take 30 MB.

use super::backend::BackendIndex;
use super::folds::Folds;
use super::graph_run::GraphRunId;
use super::narrow::Narrow;
use super::node::NodeId;
use super::node_bytes::NodeBytes;
use super::stretches::{Placed, Stretches};
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

impl NewEvent {
    /// An event of which nothing else is known.
    pub fn of(kind: EventKind, node: NodeId, backend: BackendIndex) -> Self {
        Self {
            kind,
            node,
            backend,
            source_backend: None,
            split: -1,
            graph_run: None,
            start_ns: 0,
            duration_ns: 0,
            bytes: 0,
            measured: Measured::Unknown,
            threads: None,
        }
    }

    fn stretch(&self) -> Stretch {
        Stretch {
            kind: self.kind,
            backend: self.backend,
            source_backend: self.source_backend,
            split: self.split,
            graph_run: self.graph_run,
        }
    }
}

/// One of the events of a stretch, as a reader hands it over: what they do not have in common.
#[derive(Debug, Clone, Copy)]
pub struct NewInStretch {
    pub node: NodeId,
    pub start_ns: u64,
    pub duration_ns: u64,
    pub bytes: u64,
    pub measured: Measured,
    pub threads: Option<ThreadFold>,
}

impl NewInStretch {
    /// Those of its times but the start.
    #[inline]
    fn bits(&self) -> u64 {
        let fold = self.threads.unwrap_or_default();
        let of_threads = fold.busy_sum_ns | fold.wait_sum_ns | fold.busy_max_ns;
        self.duration_ns | of_threads
    }
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

/// All events, in the order of the recording: 13 bytes for each, and 14 more for one that ran on
/// threads.
#[derive(Debug, Default)]
pub struct Events {
    stretches: Stretches,
    /// Counted from a time that the stretch has; what is before it wraps around.
    start_ns: Narrow,
    duration_ns: Narrow,
    bytes: NodeBytes,
    node: Vec<NodeId>,
    measured: Vec<Measured>,
    /// `None` until the first event with thread data; then one entry per event.
    folds: Option<Folds>,
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
        self.start_ns.reserve(more);
        self.duration_ns.reserve(more);
        self.node.reserve_exact(more);
        self.measured.reserve_exact(more);
    }

    /// Appends an event. Its end must not overflow (readers check).
    #[inline]
    pub fn push(&mut self, event: NewEvent) -> EventId {
        let NewEvent { node, start_ns, duration_ns, bytes, measured, threads, .. } = event;
        let id = EventId(self.len() as u32);
        let new = NewInStretch { node, start_ns, duration_ns, bytes, measured, threads };
        self.extend(event.stretch(), &[new]);
        id
    }

    /// Appends events that have this in common, one column after the other.
    #[inline]
    pub fn extend(&mut self, stretch: Stretch, events: &[NewInStretch]) {
        let Some(first) = events.first() else { return };
        let before = self.len();
        let from_ns = self.stretches.extend(stretch, first.start_ns, events.len());
        // Readers refuse events whose end would overflow.
        let ends = events.iter().map(|it| it.start_ns + it.duration_ns);
        let span = self.span_ns.unwrap_or((first.start_ns, 0));
        let first_ns = events.iter().map(|it| it.start_ns).fold(span.0, u64::min);
        self.span_ns = Some((first_ns, ends.fold(span.1, u64::max)));
        let starts = events.iter().map(|it| it.start_ns.wrapping_sub(from_ns));
        self.start_ns.extend(starts.clone(), starts.fold(0, |bits, start| bits | start));
        // No number has a bit that is not here.
        let limit = events.iter().fold(0, |bits, it| bits | it.bits());
        self.duration_ns.extend(events.iter().map(|it| it.duration_ns), limit);
        for (at, it) in (before as u32..).zip(events) {
            self.bytes.push(at, it.node, it.bytes);
        }
        self.node.extend(events.iter().map(|it| it.node));
        self.measured.extend(events.iter().map(|it| it.measured));
        if !self.charged_ns.is_empty() {
            self.charged_ns.extend(events.iter().map(|it| it.duration_ns), limit);
        }
        if self.folds.is_none() && events.iter().any(|it| it.threads.is_some()) {
            self.begin_folds(before);
        }
        if let Some(folds) = &mut self.folds {
            folds.extend(events.iter().map(|it| it.threads.unwrap_or_default()), limit);
        }
    }

    #[cold]
    fn begin_folds(&mut self, length: usize) {
        let mut folds = Folds::default();
        folds.reserve(self.expected.max(length));
        folds.extend(std::iter::repeat_n(ThreadFold::default(), length), 0);
        self.folds = Some(folds);
    }

    pub(super) fn span_ns(&self) -> Option<(u64, u64)> {
        self.span_ns
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.duration_ns.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    pub fn get(&self, id: EventId) -> Event {
        self.event(id, self.stretches.of(id.0 as usize))
    }

    /// An event as a reader handed it over, for another trace to take.
    pub fn again(&self, event: Event) -> NewEvent {
        NewEvent {
            kind: event.kind,
            node: event.node,
            backend: event.backend,
            source_backend: event.source_backend,
            split: event.split,
            graph_run: event.graph_run,
            start_ns: event.start_ns,
            duration_ns: event.duration_ns,
            bytes: event.bytes,
            measured: event.measured,
            threads: self.threads(event.id),
        }
    }

    /// What is not looked at costs nothing, if this is part of the loop that looks.
    #[inline(always)]
    fn event(&self, id: EventId, placed: &Placed) -> Event {
        let at = id.0 as usize;
        let Placed { from_ns, stretch, .. } = placed;
        let (node, duration_ns) = (self.node[at], self.duration_ns.get(at));
        Event {
            id,
            kind: stretch.kind,
            node,
            backend: stretch.backend,
            source_backend: stretch.source_backend,
            split: stretch.split,
            graph_run: stretch.graph_run,
            start_ns: from_ns.wrapping_add(self.start_ns.get(at)),
            duration_ns,
            bytes: self.bytes.get(id.0, node),
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
        let mut place = 0;
        (0..self.len() as u32).map(move |at| {
            place = self.stretches.onward(place, at as usize);
            self.event(EventId(at), self.stretches.at(place))
        })
    }

    /// Neighbouring events that have much in common, together. Who needs no more than that need not
    /// look at every event.
    #[inline]
    pub fn stretches(&self) -> impl Iterator<Item = (&Stretch, Range<u32>)> {
        self.stretches.iter().map(|(placed, events)| (&placed.stretch, events))
    }

    /// A stretch by its place among all.
    #[inline]
    pub fn stretch(&self, place: u32) -> &Stretch {
        &self.stretches.at(place).stretch
    }

    /// The stretch that an event is part of.
    #[inline]
    pub fn stretch_of(&self, id: EventId) -> &Stretch {
        self.stretch(self.place_of(id))
    }

    /// The place of that stretch among all.
    #[inline]
    pub fn place_of(&self, id: EventId) -> u32 {
        self.stretches.place(id.0 as usize)
    }

    /// The events of one kind.
    #[inline]
    pub fn of_kind(&self, kind: EventKind) -> impl Iterator<Item = Event> + '_ {
        let of_kind = self.stretches.iter().filter(move |(placed, _)| placed.stretch.kind == kind);
        of_kind
            .flat_map(move |(placed, range)| range.map(move |at| self.event(EventId(at), placed)))
    }

    pub fn copies(&self) -> impl Iterator<Item = Event> + '_ {
        self.of_kind(EventKind::Copy)
    }

    #[inline]
    pub fn start(&self, id: EventId) -> u64 {
        let at = id.0 as usize;
        self.stretches.of(at).from_ns.wrapping_add(self.start_ns.get(at))
    }

    /// The same if the place of its stretch among all is known.
    #[inline]
    pub fn start_in(&self, place: u32, id: EventId) -> u64 {
        self.stretches.at(place).from_ns.wrapping_add(self.start_ns.get(id.0 as usize))
    }

    /// When each event begins.
    #[inline]
    pub fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        self.stretches.iter().flat_map(|(placed, events)| {
            let starts = self.start_ns.of(events.start as usize..events.end as usize);
            starts.map(|start_ns| placed.from_ns.wrapping_add(start_ns))
        })
    }

    /// Start and end of each of some events of one stretch.
    #[inline]
    pub fn spans(&self, events: Range<u32>) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        let events = events.start as usize..events.end as usize;
        let from_ns = if events.is_empty() { 0 } else { self.stretches.of(events.start).from_ns };
        let starts = self.start_ns.of(events.clone()).map(move |it| from_ns.wrapping_add(it));
        starts.zip(self.duration_ns.of(events)).map(|(start_ns, ns)| (start_ns, start_ns + ns))
    }

    /// What counts as the time of each of some events; see [`Event::charged_ns`].
    #[inline]
    pub fn charges_of(&self, events: Range<u32>) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.charge_column().of(events.start as usize..events.end as usize)
    }

    /// Output sizes of some ops, or sizes of copies.
    #[inline]
    pub fn bytes_of(&self, events: Range<u32>) -> impl Iterator<Item = u64> + '_ {
        let nodes = self.nodes_of(events.clone()).iter();
        events.zip(nodes).map(|(at, &node)| self.bytes.get(at, node))
    }

    /// What some events compute or copy.
    #[inline]
    pub fn nodes_of(&self, events: Range<u32>) -> &[NodeId] {
        &self.node[events.start as usize..events.end as usize]
    }

    /// How some events were measured.
    #[inline]
    pub fn measured_of(&self, events: Range<u32>) -> &[Measured] {
        &self.measured[events.start as usize..events.end as usize]
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

    /// How many threads an event ran on, and how long they worked; `None` if it is not known.
    #[inline]
    pub fn busy_threads(&self, id: EventId) -> Option<(u32, u64)> {
        let busy = self.folds.as_ref()?.busy(id.0 as usize);
        Some(busy).filter(|(threads, _)| *threads > 0)
    }

    /// The folded thread data of an event that ran on threads.
    #[inline]
    pub fn threads(&self, id: EventId) -> Option<ThreadFold> {
        self.folds.as_ref()?.get(id.0 as usize)
    }

    /// The same of several, if such data was recorded: of no threads for those that ran on none.
    #[inline]
    pub fn folds(&self, events: Range<u32>) -> Option<impl Iterator<Item = ThreadFold> + '_> {
        let folds = self.folds.as_ref()?;
        Some(folds.of(events.start as usize..events.end as usize))
    }

    /// The most threads that an event ran on; `None` if none says.
    pub fn most_threads(&self) -> Option<u32> {
        self.folds.as_ref()?.most_threads().filter(|&most| most > 0)
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
        let mut runs = runs.into_iter();
        self.stretches.change(|stretch| match runs.next() {
            Some(graph_run) => Stretch { graph_run, ..*stretch },
            None => *stretch,
        });
    }
}
