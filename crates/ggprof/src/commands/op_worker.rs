//! What runs in a process of its own, because it loads libraries that may end it.

use crate::cli::OpWorker;
use crate::exit::Outcome;
use anyhow::anyhow;

pub(crate) fn op_worker(what: &OpWorker) -> anyhow::Result<Outcome> {
    match what {
        OpWorker::Numbers { library } => {
            ggprof_ops::list_numbers(library, &mut std::io::stdout().lock())
                .map_err(|reason| anyhow!(reason))?;
        }
    }
    Ok(Outcome::Done)
}
