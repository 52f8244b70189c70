//! Devices that take turns.

use super::{InWords, Told};
use crate::units;
use ggprof_analysis::findings::Bubbles;

impl InWords for Bubbles {
    fn sentence(&self, told: &Told<'_>) -> String {
        let busiest = self.devices.iter().map(|device| device.share).fold(0.0, f64::max);
        match self.devices.iter().find(|device| device.share < 0.05 * busiest) {
            Some(idle) => format!("{} has nothing to do", told.label(idle.backend)),
            None => {
                format!("{} devices take turns instead of working together", self.devices.len())
            }
        }
    }

    fn evidence(&self, told: &Told<'_>) -> String {
        let busy = self.devices.iter().map(|device| {
            let (name, share) = (told.label(device.backend), units::share(device.share));
            format!("{name} computes {share} of the time")
        });
        busy.collect::<Vec<_>>().join(", ")
    }

    fn advice(&self, _: &Told<'_>) -> String {
        "-sm row or -sm tensor, so that devices work on the same layer; one \
         device alone if the model fits (-sm none); more sequences at once (-np)"
            .to_owned()
    }
}
