//! Graphs that are cut into many pieces.

use super::{InWords, Told};
use crate::units;
use ggprof_analysis::findings::ManySplits;

impl InWords for ManySplits {
    fn sentence(&self, _: &Told<'_>) -> String {
        format!("each graph is cut into {:.0} pieces, with copies in between", self.per_run)
    }

    fn evidence(&self, _: &Told<'_>) -> String {
        let Self { per_run, devices } = self;
        let usual = devices + 2;
        let devices = match devices {
            1 => "one device".to_owned(),
            _ => format!("{devices} devices"),
        };
        format!(
            "{} splits a graph run, where {usual} are usual with {devices}",
            units::times(*per_run)
        )
    }

    fn advice(&self, _: &Told<'_>) -> String {
        "find the ops between the splits with `ggprof report --by placement`; \
         move their weights to the device (-ngl, -ot)"
            .to_owned()
    }
}
