//! `ggprof ops bench`: recorded ops alone.

use crate::cli::{OpBenchArgs, Ops};
use crate::exit::Outcome;
use crate::recording::Recording;
use crate::{messages, op_bench, printing};
use anyhow::bail;
use ggprof_analysis::{DistinctOp, distinct_ops, node_sums, roofs};
use ggprof_report::documents;

pub(crate) fn ops(what: &Ops) -> anyhow::Result<Outcome> {
    match what {
        Ops::Bench(arguments) => bench(arguments),
    }
}

fn bench(arguments: &OpBenchArgs) -> anyhow::Result<Outcome> {
    arguments.print.check(&[&arguments.file])?;
    let mut recording = Recording::open(&arguments.file)?;
    recording.select(&arguments.part)?;
    let trace = &recording.trace;
    let is_wanted = |op: &DistinctOp| {
        let backend = trace.backend(op.backend);
        let wanted = arguments.backend.as_deref();
        wanted.is_none_or(|wanted| backend.label() == wanted || backend.name == wanted)
    };
    let ops: Vec<DistinctOp> =
        distinct_ops(trace).into_iter().filter(is_wanted).take(arguments.top).collect();
    if ops.is_empty() {
        let names: Vec<&str> = trace.backends.iter().map(|backend| backend.label()).collect();
        bail!(
            "{} has no operations to run{}. Its backends: {}.",
            recording.name,
            arguments.backend.as_ref().map_or(String::new(), |name| format!(" of {name}")),
            names.join(", ")
        );
    }
    let (rows, least) = op_bench::run(trace, &ops, arguments)?;
    let roofs = roofs(trace, &node_sums(trace), recording.peaks.as_ref());
    let document = documents::op_bench(trace, &rows, &least, &roofs);
    printing::print(&arguments.print, &[document])?;
    recording.warn_of_losses();
    match rows.iter().any(|row| row.outcome.is_ok()) {
        true => Ok(recording.outcome()),
        false => {
            messages::warning("none of the operations could be run");
            bail!("nothing was measured. The last column says why.")
        }
    }
}
