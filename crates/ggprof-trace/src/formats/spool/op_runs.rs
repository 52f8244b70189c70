//! Where the ops of each split are. They are read when all that they refer to is known, and go from
//! the file into the events without a stop in between: nearly all of a recording is ops.

use ggprof_spool::bytes::Bytes;
use ggprof_spool::record::Op;
use ggprof_spool::scan::{OpReader, OpRun};
use std::io;

/// By split, and for each in the order of the file.
#[derive(Debug, Default)]
pub(super) struct OpRuns(Vec<OpRun>);

impl OpRuns {
    pub(super) fn push(&mut self, run: OpRun) {
        self.0.push(run);
    }

    /// Once, when all are there.
    pub(super) fn sort(&mut self) {
        // Stable, and quick with what is in order already.
        self.0.sort_by_key(|run| run.split);
    }

    pub(super) fn retain(&mut self, is_wanted: impl Fn(u32) -> bool) {
        self.0.retain(|run| is_wanted(run.split));
    }

    pub(super) fn of(&self, split: u32) -> &[OpRun] {
        let from = self.0.partition_point(|run| run.split < split);
        let rest = &self.0[from..];
        let count = rest.iter().take_while(|run| run.split == split).count();
        &rest[..count]
    }

    /// How many ops a split has.
    pub(super) fn count_of(&self, split: u32) -> u64 {
        self.of(split).iter().map(|run| u64::from(run.count)).sum()
    }

    /// How many ops there are.
    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|run| u64::from(run.count)).sum()
    }
}

/// The ops of a split.
pub(super) fn read<S: Bytes + ?Sized>(
    reader: &mut OpReader<'_, S>,
    runs: &[OpRun],
) -> io::Result<Vec<Op>> {
    let mut ops = Vec::new();
    for run in runs {
        reader.each(run, |op| ops.extend(op))?;
    }
    Ok(ops)
}
