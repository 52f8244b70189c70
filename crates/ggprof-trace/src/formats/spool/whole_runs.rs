//! If blocks are used again, or copied while they are written, the oldest runs have lost some of
//! their records. The rest of such a run is left out: a run is counted whole or not at all.

use super::tables::{Split, Tables};
use hashbrown::{HashMap, HashSet};

/// Takes every run out of the tables of which something is missing.
pub(super) fn keep(tables: &mut Tables) {
    let torn: Vec<u32> = {
        let found = Found::new(tables);
        let ended = tables.runs.iter().filter_map(|(number, run)| Some((*number, run.end?)));
        ended.filter(|(run, end)| !found.is_whole(*run, end.splits)).map(|(run, _)| run).collect()
    };
    for run in torn {
        tables.runs.remove(&run);
    }
}

/// What there is of each run.
struct Found<'a> {
    tables: &'a Tables,
    splits: HashMap<u32, Vec<&'a Split>>,
    /// Shapes of which every node is described.
    described: HashSet<u32>,
}

impl<'a> Found<'a> {
    fn new(tables: &'a Tables) -> Self {
        let mut splits: HashMap<u32, Vec<&Split>> = HashMap::new();
        for split in tables.splits.values() {
            splits.entry(split.begin.run).or_default().push(split);
        }
        let is_described =
            |nodes: &Vec<u32>| nodes.iter().all(|node| tables.nodes.contains_key(node));
        let described = tables.shapes.iter().filter(|(_, nodes)| is_described(nodes));
        Self { tables, splits, described: described.map(|(shape, _)| *shape).collect() }
    }

    fn is_whole(&self, run: u32, splits: u32) -> bool {
        let found = self.splits.get(&run).map_or(&[][..], Vec::as_slice);
        found.len() >= splits as usize && found.iter().all(|split| self.has_all(split))
    }

    fn has_all(&self, split: &Split) -> bool {
        let Some(end) = split.end else { return false };
        let begin = &split.begin;
        let ops = self.tables.op_runs.count_of(begin.split);
        ops >= u64::from(end.ops)
            && self.tables.backends.contains_key(&begin.backend)
            && (ops == 0 || self.described.contains(&begin.shape))
    }
}
