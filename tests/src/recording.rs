//! A recording gathered into tables, for tests to ask questions of.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use ggprof_ggml::{computes, is_marked, is_wanted};
use ggprof_spool::layout::{
    self, Backend, CopyEvent, Coverage, CoveredHow, CoveredWhy, SplitBegin, SplitEnd,
};
use ggprof_spool::reader::{DamageReason, Header};
use ggprof_spool::record::{Op, Share};
use ggprof_spool::{Damage, Record, Spool};

#[derive(Debug)]
pub struct Recording {
    pub header: Header,
    pub damage: Vec<Damage>,
    pub texts: HashMap<u32, String>,
    pub nodes: HashMap<u32, (layout::Node, Vec<layout::Source>)>,
    pub shapes: HashMap<u32, Vec<u32>>,
    pub fusions: HashMap<(u32, u32), Vec<u32>>,
    pub runs: BTreeMap<u32, Run>,
    pub splits: BTreeMap<u32, Split>,
    pub shares: Vec<Share>,
    pub copies: Vec<CopyEvent>,
    pub backends: Vec<Backend>,
    pub coverage: Vec<Coverage>,
    pub clock_samples: Vec<layout::ClockSample>,
    pub device_works: Vec<layout::DeviceWork>,
    pub device_clocks: Vec<layout::DeviceClock>,
    pub host_tasks: Vec<layout::HostTask>,
    /// The last that was said of each.
    pub buffers: BTreeMap<u32, layout::Buffer>,
    pub memory_kinds: BTreeMap<u32, layout::MemoryKind>,
    /// By node and by the backend that computed it.
    pub placements: BTreeMap<(u32, u32), Placed>,
    pub expert_uses: Vec<(layout::ExpertUse, Vec<layout::ExpertCount>)>,
}

/// The kinds of memory of a node's sources, and what devices say of it.
#[derive(Debug)]
pub struct Placed {
    pub sources: Vec<u32>,
    pub answers: Vec<layout::Answer>,
}

#[derive(Debug)]
pub struct Run {
    pub begin: layout::GraphRunBegin,
    pub end: Option<layout::GraphRunEnd>,
}

#[derive(Debug)]
pub struct Split {
    pub begin: SplitBegin,
    pub end: Option<SplitEnd>,
    pub ops: Vec<Op>,
}

impl Recording {
    /// Of a file, whose budget must add up.
    pub fn read(path: &Path) -> Recording {
        crate::budget::check(path);
        let bytes = std::fs::read(path).expect("the recording can be read");
        Recording::from_bytes(&bytes)
    }

    pub fn from_bytes(bytes: &[u8]) -> Recording {
        let spool = Spool::open(bytes).expect("the file is a recording");
        let mut recording = Recording {
            header: spool.header(),
            damage: Vec::new(),
            texts: HashMap::new(),
            nodes: HashMap::new(),
            shapes: HashMap::new(),
            fusions: HashMap::new(),
            runs: BTreeMap::new(),
            splits: BTreeMap::new(),
            shares: Vec::new(),
            copies: Vec::new(),
            backends: Vec::new(),
            coverage: Vec::new(),
            clock_samples: Vec::new(),
            device_works: Vec::new(),
            device_clocks: Vec::new(),
            host_tasks: Vec::new(),
            buffers: BTreeMap::new(),
            memory_kinds: BTreeMap::new(),
            placements: BTreeMap::new(),
            expert_uses: Vec::new(),
        };
        let (mut ops, mut ends) = (Vec::new(), Vec::new());
        for record in spool.records() {
            match record {
                Ok(Record::Op(op)) => ops.push(op),
                // A thread may end in another block than it began in, which may come first.
                Ok(record @ (Record::GraphRunEnd(_) | Record::SplitEnd(_))) => ends.push(record),
                Ok(record) => recording.take(record),
                // One unfinished record per block is what a kill leaves.
                Err(Damage { reason: DamageReason::Uncommitted, .. }) => {}
                Err(damage) => recording.damage.push(damage),
            }
        }
        ends.into_iter().for_each(|end| recording.take(end));
        for op in ops {
            if let Some(split) = recording.splits.get_mut(&op.split) {
                split.ops.push(op);
            }
        }
        recording
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Text { id, text } => _ = self.texts.insert(id, text),
            Record::Node { node, sources } => _ = self.nodes.insert(node.node, (node, sources)),
            Record::GraphShape { shape, nodes, .. } => {
                self.shapes.entry(shape).or_default().extend(nodes);
            }
            Record::Fusion { shape, position, members } => {
                self.fusions.insert((shape, position), members);
            }
            Record::GraphRunBegin(begin) => {
                self.runs.insert(begin.run, Run { begin, end: None });
            }
            Record::GraphRunEnd(end) => {
                if let Some(run) = self.runs.get_mut(&end.run) {
                    run.end = Some(end);
                }
            }
            Record::SplitBegin(begin) => {
                self.splits.insert(begin.split, Split { begin, end: None, ops: Vec::new() });
            }
            Record::SplitEnd(end) => {
                if let Some(split) = self.splits.get_mut(&end.split) {
                    split.end = Some(end);
                }
            }
            Record::ThreadShare(share) => self.shares.push(share),
            Record::Copy(copy) => self.copies.push(copy),
            Record::Backend(backend) => self.backends.push(backend),
            Record::Coverage(coverage) => self.take_coverage(coverage),
            Record::Clock(sample) => self.clock_samples.push(sample),
            Record::DeviceWork(work) => self.device_works.push(work),
            Record::DeviceClock(sample) => self.device_clocks.push(sample),
            Record::HostTask(task) => self.host_tasks.push(task),
            Record::MemoryKind(kind) => _ = self.memory_kinds.insert(kind.memory, kind),
            Record::Placement { placement, sources, answers } => {
                let key = (placement.node, placement.backend);
                self.placements.insert(key, Placed { sources, answers });
            }
            Record::ExpertUse { of, counts } => self.expert_uses.push((of, counts)),
            Record::Buffer { buffer, .. } => _ = self.buffers.insert(buffer.buffer, buffer),
            _ => {}
        }
    }

    fn take_coverage(&mut self, coverage: Coverage) {
        match self.coverage.iter_mut().find(|before| before.is_about_the_same(&coverage)) {
            Some(before) => *before = coverage,
            None => self.coverage.push(coverage),
        }
    }

    pub fn text(&self, id: u32) -> &str {
        self.texts.get(&id).map_or("", String::as_str)
    }

    /// Why something is not observed: the reason's name, and what is shown beside it.
    pub fn why(&self, covered: &Coverage) -> String {
        let name = CoveredWhy::of(covered.why).map_or("unknown", CoveredWhy::name);
        format!("{name} {}", self.text(covered.detail)).trim_end().to_owned()
    }

    pub fn completed_runs(&self) -> impl Iterator<Item = (&Run, &layout::GraphRunEnd)> {
        self.runs.values().filter_map(|run| Some((run, run.end.as_ref()?)))
    }

    pub fn splits_of(&self, run: u32) -> impl Iterator<Item = &Split> {
        self.splits.values().filter(move |split| split.begin.run == run)
    }

    /// The op's name at a position of a split.
    pub fn op_name(&self, split: &Split, position: u32) -> &str {
        self.node_at(split, position).map_or("", |node| self.text(node.op_name))
    }

    pub fn node_at(&self, split: &Split, position: u32) -> Option<&layout::Node> {
        let shape = self.shapes.get(&split.begin.shape)?;
        self.nodes.get(shape.get(position as usize)?).map(|(node, _)| node)
    }

    /// Positions of the split's nodes that do work.
    pub fn working_positions(&self, split: &Split) -> BTreeSet<u32> {
        let flags = |position| self.node_at(split, position).map_or(0, |node| node.flags);
        let marked = (0..split.begin.nodes).any(|position| is_marked(flags(position)));
        (0..split.begin.nodes)
            .filter(|&position| computes(self.op_name(split, position)))
            .filter(|&position| is_wanted(flags(position), marked))
            .filter(|&position| !self.is_empty(split, position))
            .collect()
    }

    /// A batch of which no output is wanted has nodes without rows: ggml passes over them.
    fn is_empty(&self, split: &Split, position: u32) -> bool {
        self.node_at(split, position).is_some_and(|node| node.ne.contains(&0))
    }

    /// Positions recorded as computed, fused ones included, that do work.
    pub fn recorded_positions(&self, split: &Split) -> BTreeSet<u32> {
        let mut positions = BTreeSet::new();
        // ggml looks for fusions before it looks for rows.
        for op in split.ops.iter().filter(|op| !(op.fused && self.is_empty(split, op.position))) {
            positions.insert(op.position);
            if op.fused {
                let members = self.fusions.get(&(split.begin.shape, op.position));
                positions.extend(members.into_iter().flatten());
            }
        }
        positions.retain(|&position| computes(self.op_name(split, position)));
        positions
    }

    /// Computed nodes of a run, fused ones counted singly.
    pub fn computed_in(&self, run: u32) -> usize {
        self.splits_of(run).map(|split| self.recorded_positions(split).len()).sum()
    }

    pub fn lost(&self) -> u64 {
        self.header.losses.iter().sum()
    }
}

/// The way by which something is covered: a tier's letter, or words.
pub fn way(how: u8) -> &'static str {
    match CoveredHow::of(how) {
        Some(CoveredHow::GotSlot) => "A",
        Some(CoveredHow::AbortCallback) => "B",
        Some(CoveredHow::InlineHook) => "C",
        Some(CoveredHow::Serialized) => "D",
        Some(CoveredHow::NodeByNode) => "node by node",
        Some(CoveredHow::DeviceTimestamps) => "device",
        Some(CoveredHow::Not) => "splits",
        _ => "other",
    }
}
