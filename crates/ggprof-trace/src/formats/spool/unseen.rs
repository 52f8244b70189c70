//! Counts nodes that a backend computed without being seen: a compiler may inline some calls of a
//! hooked function and not others. Graphs of one shape are computed alike, so one split of each
//! shape is examined and stands for all.

use super::op_runs;
use super::tables::{Split, Tables};
use crate::model::{LossKind, Trace};
use ggprof_ggml::{computes, is_marked, is_wanted};
use ggprof_spool::bytes::Bytes;
use ggprof_spool::layout::{Covered, CoveredHow};
use ggprof_spool::record::Op;
use ggprof_spool::scan::OpReader;
use hashbrown::{HashMap, HashSet};
use std::io;

/// Counts them, over all splits.
pub(super) fn count<S: Bytes + ?Sized>(
    tables: &Tables,
    reader: &mut OpReader<'_, S>,
    trace: &mut Trace,
) -> io::Result<()> {
    let is_hooked = |backend: u32| {
        let how = tables.coverage.how(backend, Covered::Ops);
        how.is_some_and(CoveredHow::is_hook_on_ops)
    };
    let mut unseen_in: HashMap<u32, u32> = HashMap::new();
    let (mut count, mut first) = (0, None);
    for split in tables.splits.values().filter(|split| is_hooked(split.begin.backend)) {
        let shape = split.begin.shape;
        if let Some(&some) = unseen_in.get(&shape) {
            count += u64::from(some);
            continue;
        }
        let ops = op_runs::read(reader, tables.op_runs.of(split.begin.split))?;
        let (some, position) = unseen(tables, split, &ops).unwrap_or_default();
        first = first.or(Some((shape, position)).filter(|_| some > 0));
        unseen_in.insert(shape, some);
        count += u64::from(some);
    }
    if count > 0 {
        trace.lose_many(LossKind::Unseen, count, || {
            let node = first.and_then(|(shape, position)| tables.node_at(shape, position));
            let node = node.and_then(|number| tables.nodes.get(&number));
            node.map_or("", |(node, _)| tables.text(node.op_name)).to_owned()
        });
    }
    Ok(())
}

/// How many nodes of the split's graph were computed unseen, and the first one's position.
fn unseen(tables: &Tables, split: &Split, ops: &[Op]) -> Option<(u32, u32)> {
    let shape = split.begin.shape;
    let mut seen = HashSet::new();
    for op in ops {
        seen.insert(op.position);
        let members = tables.fusions.get(&(shape, op.position)).filter(|_| op.fused);
        seen.extend(members.into_iter().flatten());
    }
    let node = |position: u32| Some(&tables.nodes.get(&tables.node_at(shape, position)?)?.0);
    // Nodes after the last op were not computed if the program aborted the graph.
    let last = seen.iter().copied().max()?;
    let positions = 0..split.begin.nodes.min(last);
    let marked = positions.clone().filter_map(node).any(|node| is_marked(node.flags));
    let mut left = positions.filter(|&position| {
        let works = node(position).is_some_and(|node| {
            is_wanted(node.flags, marked)
                && !node.ne.contains(&0)
                && computes(tables.text(node.op_name))
        });
        works && !seen.contains(&position)
    });
    let first = left.next()?;
    Some((1 + left.count() as u32, first))
}
