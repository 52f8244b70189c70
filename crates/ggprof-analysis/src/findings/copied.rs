//! What is copied in each group of phases, as far as rules need it: how much, how fast, and how much of
//! it nothing hides.

use crate::copies::{HostEnd, TensorClass, class_of, host_memory};
use crate::estimates::CopyTimes;
use ggprof_ggml::copied_tensor;
use ggprof_trace::{BackendIndex, CopyDirection, Event, EventId, GraphRunId, Trace};
use hashbrown::{HashMap, HashSet};
use std::cmp::Reverse;

/// Smaller copies are bound by latency; their rate tells nothing of the link's.
const LARGE: u64 = 1 << 20;

/// The copies of one kind, or of one tensor, in one direction, in a group of phases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedGroup {
    /// Which group of phases, as a place among the budgets; `None` outside of all.
    pub budget: Option<usize>,
    pub class: TensorClass,
    /// What the host's end is to the device; that of the last one where they differ.
    pub memory: HostEnd,
    pub direction: CopyDirection,
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

impl CopiedGroup {
    /// Bytes per nanosecond of the large ones.
    pub fn gb_per_s(&self) -> Option<f64> {
        let (bytes, ns) = self.large;
        (ns > 0).then(|| bytes as f64 / ns as f64)
    }
}

/// Whether they are there because one op is here and the next one elsewhere.
pub(super) fn is_between_ops(row: &CopiedGroup) -> bool {
    matches!(row.class, TensorClass::Activations | TensorClass::Cache | TensorClass::Unknown)
}

type CopiedKey = (Option<usize>, TensorClass, CopyDirection, BackendIndex);

struct CopiedSum {
    memory: HostEnd,
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
pub(super) fn copies(
    trace: &Trace,
    budget_of: impl Fn(&Event) -> Option<usize>,
    exposed: &HashMap<EventId, u64>,
) -> Vec<CopiedGroup> {
    let times = CopyTimes::of(trace);
    let mut sums: HashMap<CopiedKey, CopiedSum> = HashMap::new();
    for event in trace.events.copies() {
        let name = name_of(trace, &event);
        let direction = trace.direction(event.node);
        let class = class_of(trace, &event);
        let key = (budget_of(&event), class, direction, event.backend);
        let exposed_ns = exposed.get(&event.id).copied().unwrap_or(0);
        let sum = sums.entry(key).or_insert_with(CopiedSum::new);
        sum.add(&event, name, exposed_ns, times.is_untimed(trace, &event));
        sum.memory = memory_of(trace, &event, direction).unwrap_or(sum.memory);
    }
    let mut rows: Vec<CopiedGroup> = sums.into_iter().map(|(key, sum)| sum.row(key)).collect();
    rows.sort_by_key(|row| {
        let key = (row.budget, row.class, row.direction, row.backend);
        (Reverse(row.exposed_ns), Reverse(row.bytes), key)
    });
    rows
}

impl CopiedSum {
    fn new() -> Self {
        Self {
            memory: HostEnd::Unknown,
            count: 0,
            bytes: 0,
            ns: None,
            is_only_called: false,
            exposed_ns: 0,
            large: (0, 0),
            runs: HashSet::new(),
            tensors: HashMap::new(),
        }
    }

    fn add(&mut self, event: &Event, name: &str, exposed_ns: u64, is_only_called: bool) {
        self.count += 1;
        self.bytes += event.bytes;
        self.exposed_ns += exposed_ns;
        self.runs.insert(event.graph_run);
        *self.tensors.entry_ref(name).or_default() += event.bytes;
        if is_only_called {
            self.is_only_called = true;
            return;
        }
        *self.ns.get_or_insert(0) += event.charged_ns;
        if event.bytes >= LARGE {
            self.large = (self.large.0 + event.bytes, self.large.1 + event.charged_ns);
        }
    }

    fn row(self, (budget, class, direction, backend): CopiedKey) -> CopiedGroup {
        let largest = self.tensors.iter().max_by_key(|(name, bytes)| (**bytes, Reverse(*name)));
        CopiedGroup {
            budget,
            class,
            memory: self.memory,
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

fn memory_of(trace: &Trace, event: &Event, direction: CopyDirection) -> Option<HostEnd> {
    let ends = trace.ends_of(event.id)?;
    let memory = match direction {
        CopyDirection::HostToDevice => ends.source,
        CopyDirection::DeviceToHost => ends.target,
        _ => None,
    };
    memory.map(|memory| host_memory(trace, memory))
}

/// Of the tensor itself: the scheduler calls its copies `BACKEND#TENSOR#NUMBER`.
fn name_of<'t>(trace: &'t Trace, event: &Event) -> &'t str {
    let name = trace.tensor_name(event.node).unwrap_or_default();
    copied_tensor(name).unwrap_or(name)
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
            .map(|row| (row.class, row.bytes, row.runs, row.ns, row.exposed_ns, row.gb_per_s()))
            .collect();
        assert_eq!(
            told,
            [
                (TensorClass::Weights, 4_000_000, 2, Some(2_000_000), 600_000, Some(2.0)),
                (TensorClass::Experts, 4_000_000, 1, Some(500_000), 1, Some(8.0)),
                (TensorClass::Unknown, 4096, 1, None, 0, None),
                (TensorClass::Unknown, 64, 1, Some(10), 0, None),
            ]
        );
        assert_eq!((rows[0].tensor.as_str(), rows[0].tensors), ("blk.0.ffn_up.weight", 1));
    }

    /// One that the device timed, and one whose call waited for it and whatever came before.
    #[test]
    fn a_call_tells_nothing_where_the_device_times_copies() {
        let trace = text_fixture::parse(
            "backend 0 GPU gpu
             run 0..100
             copy GPU H2D 0..1000000 2000000 inp_x run=0 measured=device
             copy GPU H2D 0..9000000 2000000 inp_x run=0 measured=host",
        );
        let rows = copies(&trace, |_| Some(0), &HashMap::new());
        let told: Vec<_> = rows.iter().map(|row| (row.count, row.ns, row.gb_per_s())).collect();
        assert_eq!(told, [(2, None, Some(2.0))]);
    }
}
