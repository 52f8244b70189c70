//! `ggprof doctor`: finds out what can be recorded of a program, by running it for a short time.

use crate::cli::DoctorArgs;
use crate::doctor::{installation, program};
use crate::exit::Outcome;
use crate::{output, terminal};
use ggprof_report::render;

pub(crate) fn doctor(arguments: &DoctorArgs) -> anyhow::Result<Outcome> {
    let (document, outcome) = match arguments.command.is_empty() {
        true => installation::examine()?,
        false => program::examine(&arguments.command, arguments.seconds)?,
    };
    let text = render::console(&document, &terminal::stdout_style());
    output::to_stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(outcome)
}
