//! What runs in a process of its own, because it loads libraries that may end it.

use crate::cli::OpWorker;
use crate::exit::Outcome;
use anyhow::anyhow;

pub(crate) fn op_worker(what: &OpWorker) -> anyhow::Result<Outcome> {
    match what {
        OpWorker::Bench => {
            let trial: ggprof_ops::Trial = serde_json::from_reader(std::io::stdin().lock())?;
            let measured = ggprof_ops::measure(&trial).map_err(|reason| anyhow!(reason))?;
            println!("{}", serde_json::to_string(&measured)?);
        }
        OpWorker::Numbers { library } => {
            ggprof_ops::list_numbers(library, &mut std::io::stdout().lock())
                .map_err(|reason| anyhow!(reason))?;
        }
    }
    Ok(Outcome::Done)
}
