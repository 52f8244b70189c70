//! A device below its highest clock.

use super::{InWords, Told};
use crate::units;
use ggprof_analysis::findings::SlowClock;

impl InWords for SlowClock {
    fn sentence(&self, _: &Told<'_>) -> String {
        let share = self.shown.median_hz as f64 / self.shown.highest_hz as f64;
        let share = units::share(share);
        format!("the clock of {} is at {share} of its highest", self.shown.device)
    }

    fn evidence(&self, _: &Told<'_>) -> String {
        format!(
            "{} at the median of the phase, {} at most",
            units::frequency(self.shown.median_hz as f64),
            units::frequency(self.shown.highest_hz as f64)
        )
    }

    fn advice(&self, _: &Told<'_>) -> String {
        "look for limits of power and temperature (nvidia-smi -q -d PERFORMANCE, the governor in \
         /sys/devices/system/cpu)"
            .to_owned()
    }
}
