//! `ggprof peaks`: measures what this machine can do, and keeps it for reports.

use crate::cli::PeaksArgs;
use crate::exit::Outcome;
use crate::{kept_peaks, messages, output, terminal};
use ggprof_report::{documents, render};
use indicatif::{ProgressBar, ProgressDrawTarget};
use std::time::Duration;

pub(crate) fn peaks(arguments: &PeaksArgs) -> anyhow::Result<Outcome> {
    if let Some(file) = &arguments.output {
        output::check(file)?;
    }
    let (peaks, problems) = measured();
    for problem in &problems {
        messages::warning(problem);
    }
    let file = match &arguments.output {
        Some(file) => file.clone(),
        None => kept_peaks::place(&peaks)?,
    };
    let text = serde_json::to_string_pretty(&peaks)?;
    output::to_file(&file, |out| writeln!(out, "{text}"))?;
    let document = documents::peaks(&peaks);
    if file.as_os_str() != "-" {
        let text = render::console(&document, &terminal::stdout_style());
        output::to_stdout(|out| out.write_all(text.as_bytes()))?;
        messages::note(&format!("Kept in {}.", file.display()));
    }
    Ok(Outcome::Done)
}

/// The peaks, and a sentence for each driver that does not work. Meanwhile a line on standard
/// error says what is being measured, if that is a terminal.
fn measured() -> (ggprof_analysis::Peaks, Vec<String>) {
    let line = ProgressBar::new_spinner();
    line.set_draw_target(ProgressDrawTarget::stderr());
    line.enable_steady_tick(Duration::from_millis(200));
    let measured = ggprof_peaks::measure(&|step| line.set_message(step.to_owned()));
    line.finish_and_clear();
    measured
}
