//! Attention that takes longer as the context grows.

use super::{InWords, Told, time};
use crate::units;
use ggprof_analysis::findings::GrowingAttention;

impl InWords for GrowingAttention {
    fn sentence(&self, _: &Told<'_>) -> String {
        match self.jump {
            Some((before, after)) => format!(
                "attention slows down at once between {} and {} cells of context",
                before.cells, after.cells
            ),
            None => "attention takes longer as the context grows".to_owned(),
        }
    }

    fn evidence(&self, _: &Told<'_>) -> String {
        let Self { from, to, .. } = self;
        format!(
            "{} a token with {} cells of context, {} with {}: {} for each 1,000",
            time(from.ns),
            from.cells,
            time(to.ns),
            to.cells,
            units::duration(self.ns_per_1000)
        )
    }

    fn advice(&self, _: &Told<'_>) -> String {
        // On the CPU, flash attention is the slower one for a single token. Without it, values stay as they are.
        let change = match (self.is_on_host, self.is_flash, self.is_cache_small) {
            (true, true, _) => "-fa off -ctk q8_0 -ctv f16, or a shorter context",
            (true, false, false) => "-ctk q8_0, with -fa off as it is; or a shorter context",
            (false, false, _) => "-fa on; then -ctk q8_0 -ctv q8_0",
            (false, true, false) => "a smaller cache: -ctk q8_0 -ctv q8_0, or a shorter context",
            (_, _, true) => "a shorter context",
        };
        change.to_owned()
    }
}
