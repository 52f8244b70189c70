//! Devices that take turns.

use super::{InWords, Told};
use crate::units;
use ggprof_analysis::findings::Bubbles;

impl InWords for Bubbles {
    fn sentence(&self, told: &Told<'_>) -> String {
        match self.idle() {
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
        let busy = busy.collect::<Vec<_>>().join(", ");
        format!("{busy}, at least one of them {}", units::share(self.together))
    }

    fn advice(&self, _: &Told<'_>) -> String {
        const SHARED: &str =
            "-sm tensor, so that devices work on the same layer (older builds: -sm row)";
        let layers = "layers for it (-ts), or leave it out (--device)";
        match (self.idle().is_some(), self.are_servers) {
            (true, true) => layers.to_owned(),
            (true, false) => format!("{layers}; {SHARED}"),
            (false, _) => SHARED.to_owned(),
        }
    }
}
