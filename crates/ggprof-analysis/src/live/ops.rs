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
}

/// Calls of an op.
#[derive(Debug, Default, Clone)]
struct CallSum {
    count: u64,
    total_ns: u64,
    bytes: u64,
    /// Calls of which the bytes are not known.
    unknown: u64,
}

impl CallSum {
    fn add(&mut self, duration_ns: u64, bytes: Option<u64>) {
        self.count += 1;
        self.total_ns += duration_ns;
        self.unknown += u64::from(bytes.is_none());
        self.bytes += bytes.unwrap_or(0);
    }
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
        let mut sums: HashMap<(BackendIndex, StepKind), Vec<CallSum>> = HashMap::new();
        // Ops of one call and backend come one after the other.
        for together in news.ops.chunk_by(|a, b| (a.call, a.backend) == (b.call, b.backend)) {
            let kind = kind_of(together[0].call);
            let sums = sums.entry((together[0].backend, kind)).or_default();
            for op in together {
                let (row, bytes) = self.row(descriptions, op.node);
                sums.resize(sums.len().max(self.names.len()), CallSum::default());
                sums[row as usize].add(op.duration_ns, bytes);
            }
        }
        let rows = sums.into_iter().flat_map(|(key, sums)| {
            sums.into_iter().enumerate().map(move |(row, sum)| (key, row, sum))
        });
        let mut ops: Vec<OpNow> = rows
            .filter(|(_, _, sum)| sum.count > 0)
            .map(|((backend, kind), row, sum)| OpNow {
                name: self.names[row].clone(),
                backend: descriptions.backend(backend).name.clone(),
                kind,
                count: sum.count,
                total_ns: sum.total_ns,
                bytes: (sum.unknown == 0).then_some(sum.bytes),
            })
            .collect();
        ops.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
        ops
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
