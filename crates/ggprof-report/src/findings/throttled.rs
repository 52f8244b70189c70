//! A limit of processor time.

use super::{InWords, Told};
use crate::units;
use ggprof_analysis::findings::Throttled;

impl InWords for Throttled {
    fn sentence(&self, _: &Told<'_>) -> String {
        "the program is not let run for a part of the time: its limit of processor time is used up"
            .to_owned()
    }

    fn evidence(&self, _: &Told<'_>) -> String {
        format!(
            "the kernel kept its control group from running for {} of the time",
            units::share(self.share)
        )
    }

    fn advice(&self, _: &Told<'_>) -> String {
        "a higher limit (docker --cpus, limits.cpu in Kubernetes, CPUQuota of systemd)".to_owned()
    }
}
