//! `ggprof generate`: completions and manual pages, from the same definitions as `--help`.

use crate::cli::{Cli, Generate};
use crate::exit::Outcome;
use crate::{manual, output};
use anyhow::anyhow;
use clap::CommandFactory;

pub(crate) fn generate(what: &Generate) -> anyhow::Result<Outcome> {
    match what {
        Generate::Completions { shell } => output::to_stdout(|mut out| {
            clap_complete::generate(*shell, &mut Cli::command(), "ggprof", &mut out);
            Ok(())
        })?,
        Generate::Man { of, directory: None } => {
            let name = format!(
                "{}.1",
                ["ggprof"]
                    .into_iter()
                    .chain(of.iter().map(|it| &**it))
                    .collect::<Vec<_>>()
                    .join("-")
            );
            let page = manual::pages::<Cli>()?.into_iter().find(|page| page.file == name);
            let page = page.ok_or_else(|| {
                anyhow!("ggprof has no command {}. `ggprof --help` lists them.", of.join(" "))
            })?;
            output::to_stdout(|out| out.write_all(&page.roff))?;
        }
        Generate::Man { directory: Some(directory), .. } => {
            for page in manual::pages::<Cli>()? {
                output::to_file(&directory.join(page.file), |out| out.write_all(&page.roff))?;
            }
        }
    }
    Ok(Outcome::Done)
}
