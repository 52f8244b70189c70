//! A device that is slower than the CPU.

use super::{InWords, Told};
use crate::units;
use ggprof_analysis::findings::SlowerDevice;

impl InWords for SlowerDevice {
    fn sentence(&self, told: &Told<'_>) -> String {
        format!("{} takes longer than the CPU would", told.label(self.device))
    }

    fn evidence(&self, told: &Told<'_>) -> String {
        format!(
            "{} ops take {} there; ops of the same shapes took the CPU {}",
            units::count(u128::from(self.calls) / u128::from(told.budget.units())),
            told.each(self.device_ns),
            told.each(self.host_ns)
        )
    }

    fn advice(&self, _: &Told<'_>) -> String {
        "-ngl 0, or --device none: all layers on the CPU; if the \
         device should be the faster one, see whether a real driver computes and not one in \
         software (llvmpipe)"
            .to_owned()
    }
}
