//! What the ops of each node come to. Tables by op, by shape or by place are sums of these, so one pass
//! over the events does for all of them: a recording has millions of ops, and some thousand nodes.

use crate::attention::Attended;
use crate::budget::budget_of_phase;
use crate::phases::Phases;
use crate::work::work_of;
use ggprof_trace::{
    BackendIndex, Divisor, EventId, EventKind, GraphRunId, Measured, NodeId, ThreadFold, Trace,
};
use hashbrown::HashMap;
use std::ops::Range;

/// The sums of all nodes, apart for each backend and each group of graph runs.
#[derive(Debug, Default)]
pub struct NodeSums {
    tables: Vec<Table>,
    /// What attention had to do where that depends on the event, by table and node.
    attended: HashMap<(usize, NodeId), Attention>,
}

#[derive(Debug)]
struct Table {
    group: Option<u32>,
    backend: BackendIndex,
    /// One for each node.
    sums: Vec<NodeSum>,
}

/// The ops of one node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeSum {
    pub(crate) count: u64,
    pub(crate) total_ns: u128,
    pub(crate) min_ns: u64,
    pub(crate) max_ns: u64,
    pub(crate) first: EventId,
    /// The last one if several are equally long.
    pub(crate) longest: EventId,
    pub(crate) output_bytes: u128,
    /// Some of the times are those of calls that only start the work.
    pub(crate) host_calls: bool,
    /// Working and waiting, summed over threads.
    pub(crate) thread_busy_ns: u128,
    pub(crate) thread_wait_ns: u128,
    /// What the threads waited for each other, on average.
    pub(crate) unequal_ns: u64,
    /// The most that an op ran on.
    pub(crate) threads: u32,
    /// Kernels of a device.
    pub(crate) kernels: u64,
}

/// Operations and bytes of attention; `None` if they are unknown for one of the ops.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attention {
    pub(crate) flops: Option<u128>,
    pub(crate) moved_bytes: Option<u128>,
}

/// The sums of a node with all that they are apart for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfNode<'s> {
    pub(crate) group: Option<u32>,
    pub(crate) backend: BackendIndex,
    pub(crate) node: NodeId,
    pub(crate) sum: &'s NodeSum,
    pub(crate) attention: Option<&'s Attention>,
}

/// All graph runs together.
pub fn node_sums(trace: &Trace) -> NodeSums {
    NodeSums::of(trace, |_| None)
}

impl NodeSums {
    /// Apart for the groups of phases that have a budget of their own.
    pub fn by_budget(trace: &Trace, phases: &Phases) -> Self {
        let group_of_phase = budget_of_phase(phases);
        Self::of(trace, |run| {
            let phase = phases.phase_of_run.get(run?.0 as usize)?;
            Some(group_of_phase[*phase as usize])
        })
    }

    fn of(trace: &Trace, group_of: impl Fn(Option<GraphRunId>) -> Option<u32>) -> Self {
        let mut sums = Self::default();
        let mut known: HashMap<(Option<u32>, BackendIndex), usize> = HashMap::new();
        let attended = Attended::of(trace);
        for (stretch, events) in trace.events.stretches() {
            if stretch.kind != EventKind::Op {
                continue;
            }
            let (group, backend) = (group_of(stretch.graph_run), stretch.backend);
            let place = *known.entry((group, backend)).or_insert_with(|| {
                let table = vec![NodeSum::NOTHING; trace.nodes.len()];
                sums.tables.push(Table { group, backend, sums: table });
                sums.tables.len() - 1
            });
            sums.tables[place].add(trace, events.clone());
            sums.add_attention(trace, &attended, place, events);
        }
        sums.add_kernels(trace, |stretch| known.get(&(group_of(stretch.0), stretch.1)).copied());
        sums
    }

    fn add_attention(
        &mut self,
        trace: &Trace,
        attended: &Attended,
        place: usize,
        events: Range<u32>,
    ) {
        let nodes = events.clone().zip(trace.events.nodes_of(events));
        // The attention of all layers is the same.
        let mut last = None;
        for (at, &node) in nodes.filter(|(_, node)| attended.varies(**node)) {
            let signature = trace.node(node).signature;
            let work = match last {
                Some((same, work)) if same == signature => work,
                _ => {
                    let work = attended.work(trace, &trace.events.get(EventId(at)));
                    work.unwrap_or_else(|| work_of(trace, trace.signature(node)))
                }
            };
            last = Some((signature, work));
            let nothing = Attention { flops: Some(0), moved_bytes: Some(0) };
            let sum = self.attended.entry((place, node)).or_insert(nothing);
            sum.flops = add(sum.flops, work.flops);
            sum.moved_bytes = add(sum.moved_bytes, work.bytes_moved());
        }
    }

    fn add_kernels(
        &mut self,
        trace: &Trace,
        table_of: impl Fn((Option<GraphRunId>, BackendIndex)) -> Option<usize>,
    ) {
        for work in &trace.device_work {
            let event = trace.events.get(work.event);
            let table = table_of((event.graph_run, event.backend)).filter(|_| event.is_op());
            if let Some(table) = table {
                self.tables[table].sums[event.node.0 as usize].kernels += 1;
            }
        }
    }

    /// Those of nodes that were computed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = OfNode<'_>> {
        self.tables.iter().enumerate().flat_map(move |(place, table)| {
            let Table { group, backend, sums } = table;
            let nodes = (0..).map(NodeId).zip(sums).filter(|(_, sum)| sum.count > 0);
            nodes.map(move |(node, sum)| {
                let attention = self.attended.get(&(place, node));
                OfNode { group: *group, backend: *backend, node, sum, attention }
            })
        })
    }
}

impl Table {
    fn add(&mut self, trace: &Trace, events: Range<u32>) {
        let of_all = &trace.events;
        let calls = of_all.measured_of(events.clone()).contains(&Measured::HostCall);
        let nodes = events.clone().zip(of_all.nodes_of(events.clone()));
        let times = of_all.charges_of(events.clone()).zip(of_all.bytes_of(events.clone()));
        for ((at, node), (ns, bytes)) in nodes.zip(times) {
            self.sums[node.0 as usize].add(EventId(at), ns, bytes);
        }
        if calls {
            let measured = of_all.measured_of(events.clone()).iter();
            let measured = of_all.nodes_of(events.clone()).iter().zip(measured);
            for (node, _) in measured.filter(|(_, it)| **it == Measured::HostCall) {
                self.sums[node.0 as usize].host_calls = true;
            }
        }
        if let Some(folds) = of_all.folds(events.clone()) {
            let ends = of_all.spans(events.clone());
            let durations = ends.map(|(start_ns, end_ns)| end_ns - start_ns);
            let mut by_threads = Divisor::new(1);
            for ((node, ns), fold) in of_all.nodes_of(events).iter().zip(durations).zip(folds) {
                if u64::from(fold.threads) != by_threads.by() {
                    by_threads = Divisor::new(fold.threads.into());
                }
                if fold.threads > 0 {
                    self.sums[node.0 as usize].add_threads(ns, &fold, &by_threads);
                }
            }
        }
    }
}

impl NodeSum {
    const NOTHING: Self = Self {
        count: 0,
        total_ns: 0,
        min_ns: u64::MAX,
        max_ns: 0,
        first: EventId(u32::MAX),
        longest: EventId(0),
        output_bytes: 0,
        host_calls: false,
        thread_busy_ns: 0,
        thread_wait_ns: 0,
        unequal_ns: 0,
        threads: 0,
        kernels: 0,
    };

    #[inline]
    fn add(&mut self, event: EventId, ns: u64, bytes: u64) {
        self.count += 1;
        self.first = self.first.min(event);
        self.total_ns += u128::from(ns);
        self.output_bytes += u128::from(bytes);
        self.min_ns = self.min_ns.min(ns);
        if ns >= self.max_ns {
            self.max_ns = ns;
            self.longest = event;
        }
    }

    #[inline]
    fn add_threads(&mut self, duration_ns: u64, fold: &ThreadFold, by_threads: &Divisor) {
        self.thread_busy_ns += u128::from(fold.busy_sum_ns);
        self.thread_wait_ns += u128::from(fold.wait_sum_ns);
        self.threads = self.threads.max(fold.threads);
        let (mean_ns, _) = by_threads.divide(fold.busy_sum_ns);
        self.unequal_ns += duration_ns.saturating_sub(mean_ns);
    }
}

/// `None` once one of the amounts is unknown.
pub(crate) fn add(sum: Option<u128>, amount: Option<u64>) -> Option<u128> {
    Some(sum? + u128::from(amount?))
}
