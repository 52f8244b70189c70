//! Prompts that are computed a few tokens at a time.

use super::{InWords, Told};
use crate::units;
use ggprof_analysis::findings::SmallBatches;

impl InWords for SmallBatches {
    fn sentence(&self, _: &Told<'_>) -> String {
        format!("the prompt is computed {} tokens at a time", self.tokens_per_run)
    }

    fn evidence(&self, _: &Told<'_>) -> String {
        let bytes = units::bytes(self.bytes_per_run as f64);
        let rate = units::bandwidth(self.gb_per_s);
        format!("{} graph runs, each of which reads {bytes} ({rate})", self.runs)
    }

    fn advice(&self, _: &Told<'_>) -> String {
        "-ub 512 -b 2048".to_owned()
    }
}
