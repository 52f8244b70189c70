//! `ggprof generate`: completions and the manual page, from the same definitions as `--help`.

use crate::cli::{Cli, Generate};
use crate::exit::Outcome;
use crate::output;
use clap::CommandFactory;

pub(crate) fn generate(what: &Generate) -> anyhow::Result<Outcome> {
    let mut command = Cli::command();
    output::to_stdout(|mut out| match what {
        Generate::Completions { shell } => {
            clap_complete::generate(*shell, &mut command, "ggprof", &mut out);
            Ok(())
        }
        Generate::Man => clap_mangen::Man::new(command).render(&mut out),
    })?;
    Ok(Outcome::Done)
}
