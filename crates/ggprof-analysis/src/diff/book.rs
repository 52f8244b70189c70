//! Adds up the time of a phase by key and block.

use super::cut::Group;
use super::key::{Activity, Key};
use super::ledger::{LedgerEntry, PhaseLedger, StepBlock};
use hashbrown::HashMap;

/// Parts of the time that belong to no event.
pub(super) const OUTSIDE: [Activity; 5] = [
    Activity::InRun,
    Activity::Waiting,
    Activity::InCall,
    Activity::Program,
    Activity::Interrupted,
];

/// One group of phases. Columns are the keys of the recording's events, and behind them the parts
/// that belong to no event.
pub(super) struct Book {
    keys: usize,
    /// For each block the nanoseconds of each column.
    blocks: Vec<Vec<u64>>,
    calls: Vec<f64>,
    interrupted: Vec<u64>,
}

impl Book {
    pub(super) fn new(keys: usize, group: &Group) -> Self {
        let columns = keys + OUTSIDE.len();
        let blocks = group.block_units.len().max(1);
        Self {
            keys,
            blocks: vec![vec![0; columns]; blocks],
            calls: vec![0.0; columns],
            interrupted: vec![0; columns],
        }
    }

    pub(super) fn spend(&mut self, block: u32, key: u32, ns: u64) {
        self.blocks[block as usize][key as usize] += ns;
    }

    pub(super) fn spend_outside(&mut self, block: u32, activity: Activity, ns: u64) {
        let at = OUTSIDE.iter().position(|&it| it == activity).unwrap_or(0);
        self.blocks[block as usize][self.keys + at] += ns;
    }

    pub(super) fn call(&mut self, key: u32, calls: f64) {
        self.calls[key as usize] += calls;
    }

    /// A call took so much longer than usual.
    pub(super) fn interrupt(&mut self, block: u32, key: u32, ns: u64) {
        self.interrupted[key as usize] += 1;
        self.spend_outside(block, Activity::Interrupted, ns);
    }

    pub(super) fn finish(self, group: Group, keys: &[Key]) -> PhaseLedger {
        let outside = OUTSIDE.map(Key::of_activity);
        let mut entries: Vec<LedgerEntry> = Vec::new();
        let mut places: HashMap<&Key, usize> = HashMap::new();
        // Several columns may have the same key, and some have nothing in this phase.
        let mut entry_of_column = Vec::new();
        for (column, key) in keys.iter().chain(&outside).enumerate() {
            let ns: u64 = self.blocks.iter().map(|block| block[column]).sum();
            let (calls, interrupted) = (self.calls[column], self.interrupted[column]);
            if ns == 0 && calls == 0.0 {
                entry_of_column.push(None);
                continue;
            }
            let place = *places.entry(key).or_insert_with(|| {
                let key = key.clone();
                entries.push(LedgerEntry { key, ns: 0, calls: 0.0, interrupted: 0 });
                entries.len() - 1
            });
            let entry = &mut entries[place];
            entry.ns += ns;
            entry.calls += calls;
            entry.interrupted += interrupted;
            entry_of_column.push(Some(place));
        }
        let block = |(units, columns): (u64, &Vec<u64>)| {
            let mut ns = vec![0; entries.len()];
            for (place, of_column) in entry_of_column.iter().zip(columns) {
                place.iter().for_each(|&place: &usize| ns[place] += of_column);
            }
            StepBlock { units, wall_ns: ns.iter().sum(), ns }
        };
        let units = group.block_units.iter().copied();
        let blocks: Vec<StepBlock> = units.zip(&self.blocks).map(block).collect();
        PhaseLedger {
            kind: group.kind,
            label: group.label,
            units: group.steps.iter().sum(),
            wall_ns: entries.iter().map(|entry| entry.ns).sum(),
            entries,
            blocks,
            steps: group.steps,
        }
    }
}
