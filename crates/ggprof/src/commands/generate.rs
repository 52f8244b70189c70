//! `ggprof generate`: completions and the manual page, from the same definitions as `--help`.

use crate::cli::{Cli, Generate};
use crate::exit::Outcome;
use crate::output;
use anyhow::Context;
use clap::CommandFactory;

pub(crate) fn generate(what: &Generate) -> anyhow::Result<Outcome> {
    let mut command = Cli::command();
    match what {
        Generate::Completions { shell } => output::to_stdout(|mut out| {
            clap_complete::generate(*shell, &mut command, "ggprof", &mut out);
            Ok(())
        })?,
        Generate::Man { directory: None } => {
            output::to_stdout(|mut out| clap_mangen::Man::new(command).render(&mut out))?;
        }
        Generate::Man { directory: Some(directory) } => {
            clap_mangen::generate_to(command, directory).with_context(|| {
                format!("the pages cannot be written to {}", directory.display())
            })?
        }
    }
    Ok(Outcome::Done)
}
