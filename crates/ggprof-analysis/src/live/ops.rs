//! Which ops took how long between two looks.

use super::OpNow;
use crate::step::StepKind;
use crate::work::work_of;
use ggprof_trace::formats::spool::News;
use ggprof_trace::{BackendIndex, NodeId, Trace};
use hashbrown::HashMap;

#[derive(Debug, Default)]
pub(super) struct LiveOps {
    /// By the number of a node: its name, and what one call reads and writes.
    rows: Vec<Option<(u32, Option<u64>)>>,
    names: Vec<String>,
    tallies: HashMap<(BackendIndex, StepKind), Tally>,
}

/// Calls of nodes since the last look. There may be a million calls of some hundred nodes, so each is only
/// added up.
#[derive(Debug, Default)]
struct Tally {
    /// By the number of the node: calls, and nanoseconds.
    of_node: Vec<(u64, u64)>,
    /// Those that have any.
    called: Vec<NodeId>,
}

impl Tally {
    fn add(&mut self, ops: &[(NodeId, u64)]) {
        for &(node, duration_ns) in ops {
            let at = node.0 as usize;
            if at >= self.of_node.len() {
                self.of_node.resize(at + 1, (0, 0));
            }
            let (count, total_ns) = &mut self.of_node[at];
            if *count == 0 {
                self.called.push(node);
            }
            *count += 1;
            *total_ns += duration_ns;
        }
    }

    /// Node, calls and nanoseconds; begins anew.
    fn take(&mut self) -> impl Iterator<Item = (NodeId, u64, u64)> {
        let Tally { of_node, called } = self;
        called.drain(..).map(|node| {
            let (count, total_ns) = std::mem::take(&mut of_node[node.0 as usize]);
            (node, count, total_ns)
        })
    }
}

/// Calls of an op.
#[derive(Debug, Default, Clone)]
struct CallSum {
    count: u64,
    total_ns: u64,
    bytes: u64,
    /// Of some calls the bytes are not known.
    lacks_bytes: bool,
}

impl LiveOps {
    /// Sums by op, backend and kind of step, longest first.
    pub(super) fn take(
        &mut self,
        descriptions: &Trace,
        news: &News,
        kind_of: impl Fn(u32) -> StepKind,
    ) -> Vec<OpNow> {
        if news.is_renumbered {
            *self = Self::default();
        }
        for (call, backend, ops) in news.ops.together() {
            self.tallies.entry((backend, kind_of(call))).or_default().add(ops);
        }
        let mut tallies = std::mem::take(&mut self.tallies);
        let mut ops = Vec::new();
        for (&(backend, kind), tally) in &mut tallies {
            let sums = self.sums(descriptions, tally);
            ops.extend(sums.into_iter().zip(&self.names).filter(|(sum, _)| sum.count > 0).map(
                |(sum, name)| OpNow {
                    name: name.clone(),
                    backend: descriptions.backend(backend).name.clone(),
                    kind,
                    count: sum.count,
                    total_ns: sum.total_ns,
                    bytes: (!sum.lacks_bytes).then_some(sum.bytes),
                },
            ));
        }
        self.tallies = tallies;
        ops.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
        ops
    }

    /// By the places of names.
    fn sums(&mut self, descriptions: &Trace, tally: &mut Tally) -> Vec<CallSum> {
        let mut sums: Vec<CallSum> = Vec::new();
        for (node, count, total_ns) in tally.take() {
            let (row, bytes) = self.row(descriptions, node);
            sums.resize(sums.len().max(self.names.len()), CallSum::default());
            let sum = &mut sums[row as usize];
            sum.count += count;
            sum.total_ns += total_ns;
            sum.bytes = sum.bytes.saturating_add(bytes.unwrap_or(0).saturating_mul(count));
            sum.lacks_bytes |= bytes.is_none();
        }
        sums
    }

    /// Which name an op has, and what one call of it reads and writes.
    fn row(&mut self, descriptions: &Trace, node: NodeId) -> (u32, Option<u64>) {
        if let Some(Some(row)) = self.rows.get(node.0 as usize) {
            return *row;
        }
        let signature = descriptions.signature(node);
        let extra = signature.extra.or(signature.sub_op_name);
        let name = descriptions.text(extra.unwrap_or(signature.op));
        let known = self.names.iter().position(|known| known == name);
        let row = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        let row = (row as u32, work_of(descriptions, signature).bytes_moved());
        self.rows.resize(self.rows.len().max(node.0 as usize + 1), None);
        self.rows[node.0 as usize] = Some(row);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::formats::spool::LiveOp;
    use ggprof_trace::text_fixture;

    #[test]
    fn each_look_has_its_own_sums() {
        let trace = text_fixture::parse(
            "backend 0 CPU cpu\nop CPU ADD 0..1 a run=0\nop CPU ADD 1..2 b run=0\nop CPU MUL 2..3 c run=0",
        );
        let nodes: Vec<NodeId> = trace.nodes.ids().collect();
        let [a, b, c] = nodes[..] else { panic!("{nodes:?}") };
        let op =
            |call, node, duration_ns| LiveOp { call, node, backend: BackendIndex(0), duration_ns };
        let mut ops = LiveOps::default();
        let mut look = |new: Vec<LiveOp>| {
            let news = News { ops: new.into_iter().collect(), ..News::default() };
            let kind = |call| if call == 1 { StepKind::Prompt } else { StepKind::Generation };
            let rows = ops.take(&trace, &news, kind).into_iter();
            rows.map(|op| (op.name, op.kind, op.count, op.total_ns)).collect::<Vec<_>>()
        };
        let (prompt, generation) = (StepKind::Prompt, StepKind::Generation);
        assert_eq!(
            look(vec![op(1, a, 10), op(1, b, 20), op(2, a, 7), op(1, c, 5), op(2, b, 1)]),
            [
                ("ADD".to_owned(), prompt, 2, 30),
                ("ADD".to_owned(), generation, 2, 8),
                ("MUL".to_owned(), prompt, 1, 5)
            ]
        );
        assert_eq!(look(vec![op(2, c, 3)]), [("MUL".to_owned(), generation, 1, 3)]);
        assert_eq!(look(vec![]), []);
    }
}
