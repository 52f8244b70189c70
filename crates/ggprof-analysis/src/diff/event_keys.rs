//! The key of each event of a recording.

use super::fusions::{Fusions, Joined};
use super::key::{Activity, Key};
use crate::grouping::{fusion_of, shape_representatives};
use crate::layers::places;
use ggprof_trace::{
    BackendIndex, Event, EventId, EventKind, NodeId, Signature, SignatureId, StringId, Tensor,
    Trace,
};
use hashbrown::HashMap;

pub(super) struct EventKeys {
    pub(super) keys: Vec<Key>,
    /// For each event its place in `keys`; behind those of the recording, the events elsewhere.
    pub(super) of_event: Vec<u32>,
    /// Events that go on with what the one before began, in order: no calls of their own.
    continued: Vec<EventId>,
}

/// What decides over a key, in numbers of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Raw {
    /// The first of the same op and shapes.
    signature: SignatureId,
    backend: BackendIndex,
    module: crate::layers::Module,
    kernels: u32,
    /// What the other side computes together, by its place among those.
    fusion: Option<u32>,
}

impl EventKeys {
    pub(super) fn new(trace: &Trace, fused_there: &Fusions) -> Self {
        let representatives = shape_representatives(trace);
        let places = places(trace);
        let mut kernels = Kernels::default();
        let joined = Joined::new(trace, fused_there);
        let mut table = Table::new(trace.nodes.len());
        let mut of_event = Vec::with_capacity(trace.events.len());
        for (stretch, events) in trace.events.stretches() {
            let nodes = trace.events.nodes_of(events.clone());
            for (event, &node) in events.map(EventId).zip(nodes) {
                let raw = Raw {
                    signature: representatives[trace.node(node).signature.0 as usize],
                    backend: stretch.backend,
                    module: places.at(event, node).module,
                    kernels: kernels.of(trace, event),
                    fusion: None,
                };
                of_event.push(table.place(node, raw));
            }
        }
        for event in &trace.elsewhere {
            let raw = Raw {
                signature: representatives[trace.node(event.node).signature.0 as usize],
                backend: event.backend,
                module: places.of(event).module,
                kernels: Kernels::NONE,
                fusion: None,
            };
            of_event.push(table.like(event.node, raw));
        }
        let mut continued = Vec::new();
        if !joined.is_idle() {
            join(trace, &joined, &mut table, &mut of_event, &mut continued);
        }
        let key = |raw: &Raw| key(trace, raw, &kernels, &joined);
        let keys = table.raws.iter().map(key).collect();
        Self { keys, of_event, continued }
    }

    /// Whether it counts as a call.
    pub(super) fn is_call(&self, event: EventId) -> bool {
        self.continued.binary_search(&event).is_err()
    }
}

/// Numbers of raw keys. Most nodes always have the same.
struct Table {
    raws: Vec<Raw>,
    places: HashMap<Raw, u32>,
    latest: Vec<Option<(Raw, u32)>>,
}

impl Table {
    fn new(nodes: usize) -> Self {
        Self { raws: Vec::new(), places: HashMap::new(), latest: vec![None; nodes] }
    }

    #[inline]
    fn place(&mut self, node: NodeId, raw: Raw) -> u32 {
        if let Some((latest, place)) = self.latest[node.0 as usize]
            && latest == raw
        {
            return place;
        }
        let place = *self.places.entry(raw).or_insert_with(|| {
            self.raws.push(raw);
            self.raws.len() as u32 - 1
        });
        self.latest[node.0 as usize] = Some((raw, place));
        place
    }
}

impl Table {
    /// The place of what was computed outside of the part of a recording: its kernels are not kept there,
    /// and are those of the same node if it was computed inside, too.
    fn like(&mut self, node: NodeId, raw: Raw) -> u32 {
        let known = self.latest[node.0 as usize].filter(|(known, _)| known.backend == raw.backend);
        known.map_or_else(|| self.place(node, raw), |(_, place)| place)
    }
}

/// Gives events that the other side computes together the key of what they compute together.
fn join(
    trace: &Trace,
    joined: &Joined<'_>,
    table: &mut Table,
    of_event: &mut [u32],
    continued: &mut Vec<EventId>,
) {
    let is_same = |a: &Event, b: &Event| a.graph_run == b.graph_run && a.backend == b.backend;
    let mut in_order: Vec<Event> = Vec::new();
    let ops = trace.events.of_kind(EventKind::Op).map(Some).chain([None]);
    for next in ops {
        // A graph run ends here, or the recording.
        if in_order.last().is_some_and(|last| next.is_none_or(|next| !is_same(last, &next))) {
            join_in_order(trace, joined, &in_order, table, of_event, continued);
            in_order.clear();
        }
        in_order.extend(next);
    }
}

/// The same for the ops of one graph run and backend.
fn join_in_order(
    trace: &Trace,
    joined: &Joined<'_>,
    mut rest: &[Event],
    table: &mut Table,
    of_event: &mut [u32],
    continued: &mut Vec<EventId>,
) {
    while let Some(first) = rest.first() {
        let length = match joined.at(trace, rest) {
            Some((fusion, length)) => {
                let raw = table.raws[of_event[first.id.0 as usize] as usize];
                let raw = Raw { fusion: Some(fusion), kernels: Kernels::NONE, ..raw };
                let place = table.place(first.node, raw);
                rest[..length].iter().for_each(|it| of_event[it.id.0 as usize] = place);
                continued.extend(rest[1..length].iter().map(|it| it.id));
                length
            }
            None => 1,
        };
        rest = &rest[length..];
    }
}

/// Lists of kernels, by number.
#[derive(Default)]
struct Kernels {
    lists: Vec<Vec<StringId>>,
    places: HashMap<Vec<StringId>, u32>,
    /// How far the device work was looked at: it comes in the order of the events.
    next: usize,
    names: Vec<StringId>,
}

impl Kernels {
    const NONE: u32 = u32::MAX;

    #[inline]
    fn of(&mut self, trace: &Trace, event: EventId) -> u32 {
        let work = &trace.device_work[self.next..];
        let length = work.iter().take_while(|work| work.event == event).count();
        self.next += length;
        if length == 0 {
            return Self::NONE;
        }
        self.names.clear();
        self.names.extend(work[..length].iter().map(|work| work.name));
        self.names.dedup();
        if let Some(&place) = self.places.get(&self.names) {
            return place;
        }
        self.lists.push(self.names.clone());
        let place = self.lists.len() as u32 - 1;
        self.places.insert(self.names.clone(), place);
        place
    }

    fn text(&self, trace: &Trace, list: u32) -> Option<String> {
        let names = self.lists.get(list as usize)?;
        let names: Vec<&str> = names.iter().map(|&name| trace.text(name)).collect();
        Some(names.join(" + "))
    }
}

fn key(trace: &Trace, raw: &Raw, kernels: &Kernels, joined: &Joined<'_>) -> Key {
    let signature = trace.nodes.signature(raw.signature);
    let is_copy = signature.copied.is_some();
    let tensors = || tensors(signature);
    let has_shape = tensors().any(|tensor| tensor.is_known());
    let fused = raw.fusion.map(|fusion| joined.name(fusion));
    Key {
        activity: if is_copy { Activity::Copy } else { Activity::Op },
        module: Some(raw.module),
        op: Some(fused.unwrap_or_else(|| op(trace, signature, is_copy))),
        shape: has_shape.then(|| tensors().map(|tensor| tensor.ne).collect()),
        types: has_shape
            .then(|| tensors().map(|tensor| trace.types.name(tensor.type_id)).collect()),
        backend: Some(trace.backend(raw.backend).label().to_owned()),
        kernel: kernels.text(trace, raw.kernels),
    }
}

fn op(trace: &Trace, signature: &Signature, is_copy: bool) -> String {
    let kind = if is_copy { EventKind::Copy } else { EventKind::Op };
    let name = trace.text(signature.op);
    match (fusion_of(signature, kind), signature.sub_op_name) {
        (Some(fusion), _) => trace.text(fusion).to_owned(),
        // `UNARY` and `GLU` say nothing without it.
        (None, Some(sub_op)) => format!("{name}({})", trace.text(sub_op)),
        (None, None) => name.to_owned(),
    }
}

/// The sources that there are, and the result.
fn tensors(signature: &Signature) -> impl Iterator<Item = Tensor> {
    let sources = signature.sources.iter().map(|source| source.tensor).filter(Tensor::is_known);
    sources.chain([signature.output])
}
