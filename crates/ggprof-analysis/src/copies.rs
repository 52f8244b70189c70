//! What is copied between memories: how much, how fast, by tensor, and how much of it nothing hides.

use crate::budget::Direction;
use ggprof_ggml::copied_tensor;
use ggprof_trace::{BackendIndex, Event, EventId, EventKind, GraphRunId, Measured, Trace};
use hashbrown::{HashMap, HashSet};
use std::cmp::Reverse;

/// Smaller copies are bound by latency; their rate tells nothing of the link's.
const LARGE: u64 = 1 << 20;

/// What a copied tensor is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Copied {
    Weights,
    Experts,
    Cache,
    /// What the program gives to a graph.
    Input,
    /// Results of ops, between backends.
    Activation,
}

/// The copies of one kind, or of one tensor, in one direction, in a group of phases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyRow {
    /// Which group of phases, as a place among the budgets; `None` outside of all.
    pub budget: Option<usize>,
    pub what: Copied,
    pub direction: Direction,
    pub backend: BackendIndex,
    /// The tensor with most bytes among them, and how many there are.
    pub tensor: String,
    pub tensors: u64,
    pub count: u64,
    pub bytes: u64,
    /// In how many graph runs.
    pub runs: u64,
    /// The copies' own time; `None` where only the calls that start them were timed.
    pub ns: Option<u64>,
    /// Of it, while nothing computed.
    pub exposed_ns: u64,
    /// Bytes and time of the large ones among them.
    pub large: (u64, u64),
}

impl CopyRow {
    /// Bytes per nanosecond of the large ones.
    pub fn gb_per_s(&self) -> Option<f64> {
        let (bytes, ns) = self.large;
        (ns > 0).then(|| bytes as f64 / ns as f64)
    }
}

type Key = (Option<usize>, Copied, Direction, BackendIndex);

#[derive(Default)]
struct Sum {
    count: u64,
    bytes: u64,
    ns: Option<u64>,
    is_only_called: bool,
    exposed_ns: u64,
    large: (u64, u64),
    runs: HashSet<Option<GraphRunId>>,
    tensors: HashMap<String, u64>,
}

/// By group of phases, purpose, direction and backend; the most exposed first. `budget_of` tells the
/// group of an event.
pub fn copies(
    trace: &Trace,
    budget_of: impl Fn(&Event) -> Option<usize>,
    exposed: &HashMap<EventId, u64>,
) -> Vec<CopyRow> {
    let mut sums: HashMap<Key, Sum> = HashMap::new();
    for event in trace.events.iter().filter(|event| event.kind == EventKind::Copy) {
        let name = name_of(trace, &event);
        let direction = Direction::of(trace.op_name(event.node));
        let key = (budget_of(&event), purpose(name, direction), direction, event.backend);
        let exposed_ns = exposed.get(&event.id).copied().unwrap_or(0);
        sums.entry(key).or_default().add(&event, name, exposed_ns);
    }
    let mut rows: Vec<CopyRow> = sums.into_iter().map(|(key, sum)| sum.row(key)).collect();
    rows.sort_by_key(|row| (Reverse(row.exposed_ns), Reverse(row.bytes), row.budget, row.what));
    rows
}

impl Sum {
    fn add(&mut self, event: &Event, name: &str, exposed_ns: u64) {
        self.count += 1;
        self.bytes += event.bytes;
        self.exposed_ns += exposed_ns;
        self.runs.insert(event.graph_run);
        *self.tensors.entry_ref(name).or_default() += event.bytes;
        if event.measured == Measured::HostCall {
            self.is_only_called = true;
            return;
        }
        *self.ns.get_or_insert(0) += event.charged_ns;
        if event.bytes >= LARGE {
            self.large = (self.large.0 + event.bytes, self.large.1 + event.charged_ns);
        }
    }

    fn row(self, (budget, what, direction, backend): Key) -> CopyRow {
        let largest = self.tensors.iter().max_by_key(|(name, bytes)| (**bytes, Reverse(*name)));
        CopyRow {
            budget,
            what,
            direction,
            backend,
            tensor: largest.map(|(name, _)| name.clone()).unwrap_or_default(),
            tensors: self.tensors.len() as u64,
            count: self.count,
            bytes: self.bytes,
            runs: self.runs.len() as u64,
            ns: self.ns.filter(|_| !self.is_only_called),
            exposed_ns: self.exposed_ns,
            large: self.large,
        }
    }
}

/// Of the tensor itself: the scheduler calls its copies `BACKEND#TENSOR#NUMBER`.
fn name_of<'t>(trace: &'t Trace, event: &Event) -> &'t str {
    let name = trace.tensor_name(event.node).unwrap_or_default();
    copied_tensor(name).unwrap_or(name)
}

fn purpose(name: &str, direction: Direction) -> Copied {
    let is_weight = name.ends_with(".weight") || name.ends_with(".bias");
    match name {
        _ if is_weight && name.contains("_exps") => Copied::Experts,
        _ if is_weight => Copied::Weights,
        _ if name.starts_with("cache_") => Copied::Cache,
        "embd" | "inp_embd" if direction == Direction::HostToDevice => Copied::Activation,
        _ if name.starts_with("inp_") || name.starts_with("leaf_") => Copied::Input,
        _ if name.starts_with("attn_inp_") => Copied::Input,
        _ => Copied::Activation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn copies_are_summed_by_what_they_are_for() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             run 0..100
             run 100..200
             copy GPU H2D 0..1000000 2000000 blk.0.ffn_up.weight run=0
             copy GPU H2D 0..1000000 2000000 GPU#blk.0.ffn_up.weight#0 run=1
             copy GPU H2D 0..500000 4000000 blk.0.ffn_up_exps.weight run=1
             copy GPU H2D 0..10 64 inp_pos run=1
             copy GPU D2H 0..20 4096 ffn_out-3 run=1 measured=host_call",
        );
        let exposed = HashMap::from([(EventId(0), 600_000), (EventId(2), 1)]);
        let rows = copies(&trace, |_| Some(0), &exposed);
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.what, row.bytes, row.runs, row.ns, row.exposed_ns, row.gb_per_s()))
            .collect();
        assert_eq!(
            told,
            [
                (Copied::Weights, 4_000_000, 2, Some(2_000_000), 600_000, Some(2.0)),
                (Copied::Experts, 4_000_000, 1, Some(500_000), 1, Some(8.0)),
                (Copied::Activation, 4096, 1, None, 0, None),
                (Copied::Input, 64, 1, Some(10), 0, None),
            ]
        );
        assert_eq!((rows[0].tensor.as_str(), rows[0].tensors), ("blk.0.ffn_up.weight", 1));
    }
}
