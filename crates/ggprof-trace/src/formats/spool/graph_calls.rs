//! Graphs that were left to a server, or computed for a client: what it takes to find the other half
//! of each in the recording of another process.

use super::events::Builder;
use super::tables::{Split, Tables};
use crate::model::{GraphCall, Trace};
use ggprof_spool::layout;
use hashbrown::HashMap;

impl Builder<'_> {
    /// By start.
    pub(super) fn graph_calls(&self, trace: &mut Trace) {
        let mut contents: HashMap<(u32, u32), u64> = HashMap::new();
        for split in self.tables.splits.values() {
            let begin = &split.begin;
            let (Some(end), Some(&graph_run), Some(&backend)) =
                (split.end, self.runs.get(&begin.run), self.backends.get(&begin.backend))
            else {
                continue;
            };
            let is_remote = trace.backend(backend).endpoint().is_some();
            if begin.nodes == 0 || !(is_remote || self.is_direct(split)) {
                continue;
            }
            let content = *contents
                .entry((begin.shape, begin.nodes))
                .or_insert_with(|| content(self.tables, begin));
            trace.graph_calls.push(GraphCall {
                graph_run,
                split: begin.index.into(),
                backend,
                start_ns: self.clock.ns(begin.ticks),
                end_ns: self.clock.ns(end.ticks),
                content,
            });
        }
        trace.graph_calls.sort_by_key(|call| call.start_ns);
    }

    /// Whether the program computed it without a scheduler.
    fn is_direct(&self, split: &Split) -> bool {
        let run = self.tables.runs.get(&split.begin.run);
        run.is_some_and(|run| run.begin.scheduler == layout::NONE)
    }
}

/// Ops, names and shapes of a split's nodes, in order. Numbers of ops and types differ between
/// copies of ggml, so names count.
fn content(tables: &Tables, begin: &layout::SplitBegin) -> u64 {
    let mut hash = Hash::default();
    let numbers = tables.shapes.get(&begin.shape).into_iter().flatten();
    for number in numbers.take(begin.nodes as usize) {
        let Some((node, _)) = tables.nodes.get(number) else { continue };
        hash.text(tables.text(node.op_name));
        hash.text(tables.text(node.op_detail));
        hash.text(tables.text(node.name));
        node.ne.iter().for_each(|ne| hash.bytes(&ne.to_le_bytes()));
    }
    hash.0
}

/// FNV-1a: the same number in every process and version.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// With its end, so that `ab`, `c` is not `a`, `bc`.
    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0]);
    }
}
