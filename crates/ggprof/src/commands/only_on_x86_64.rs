//! What is written for the registers of one processor, on others.

use crate::cli::AttachArgs;
use crate::exit::Outcome;
use anyhow::bail;

pub(crate) fn attach(_: &AttachArgs) -> anyhow::Result<Outcome> {
    bail!(
        "ggprof attaches to running programs on x86-64 only. Start the program with \
         `ggprof run --paused -- …`, and record with `ggprof ctl start` when you want to."
    )
}
