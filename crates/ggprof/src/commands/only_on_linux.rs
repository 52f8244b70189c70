//! Commands that run programs or measure the machine, on systems where ggprof only reads recordings.

use crate::cli::{
    AttachArgs, BenchArgs, CtlArgs, DeliverArgs, DoctorArgs, OpWorker, Ops, PeaksArgs, RunArgs,
    TopArgs,
};
use crate::exit::Outcome;
use anyhow::bail;

fn refuse() -> anyhow::Result<Outcome> {
    bail!(
        "ggprof records programs on Linux only. Record there with `ggprof run -o FILE.ggprof -- …`, \
         and open the file here with `ggprof report` or `ggprof view`."
    )
}

pub(crate) fn run(_: &RunArgs) -> anyhow::Result<Outcome> {
    refuse()
}

pub(crate) fn attach(_: &AttachArgs) -> anyhow::Result<Outcome> {
    refuse()
}

pub(crate) fn ctl(_: &CtlArgs) -> anyhow::Result<Outcome> {
    refuse()
}

pub(crate) fn top(_: &TopArgs) -> anyhow::Result<Outcome> {
    refuse()
}

pub(crate) fn doctor(_: &DoctorArgs) -> anyhow::Result<Outcome> {
    refuse()
}

pub(crate) fn deliver(_: &DeliverArgs) -> anyhow::Result<Outcome> {
    refuse()
}

pub(crate) fn bench(_: &BenchArgs) -> anyhow::Result<Outcome> {
    refuse()
}

pub(crate) fn peaks(_: &PeaksArgs) -> anyhow::Result<Outcome> {
    refuse()
}

pub(crate) fn op_worker(_: &OpWorker) -> anyhow::Result<Outcome> {
    refuse()
}

pub(crate) fn ops(_: &Ops) -> anyhow::Result<Outcome> {
    refuse()
}

pub(crate) fn env() -> anyhow::Result<Outcome> {
    refuse()
}
