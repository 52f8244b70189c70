//! Prints documents in the format that was asked for, to where it was.

use crate::cli::{ColorArg, PrintArgs};
use crate::format::FormatArg;
use crate::{output, terminal};
use anyhow::bail;
use clap::ValueEnum;
use ggprof_report::Document;
use ggprof_report::render::{self, Style};
use std::path::Path;

impl PrintArgs {
    /// The format that was asked for, by name or by the name of the file; a table otherwise.
    pub(crate) fn format(&self) -> FormatArg {
        self.asked_format().unwrap_or(FormatArg::Table)
    }

    pub(crate) fn asked_format(&self) -> Option<FormatArg> {
        self.format.or(self.output.as_ref().and_then(|output| output.format))
    }

    /// Where it is printed; `-` is standard output.
    pub(crate) fn path(&self) -> &Path {
        self.output.as_ref().map_or(Path::new("-"), |output| &output.path)
    }

    /// Whether it can be printed, before the work that is printed; `inputs` are not overwritten.
    pub(crate) fn check(&self, inputs: &[&Path]) -> anyhow::Result<()> {
        let Some(output) = &self.output else { return Ok(()) };
        let format = self.format();
        if !output.may_hold(format) {
            let word = format.to_possible_value();
            let word = word.as_ref().map_or("this", |value| value.get_name());
            let name = output.path.display();
            bail!("--format {word} does not fit {name}. Leave it out, or choose another name.");
        }
        inputs.iter().try_for_each(|input| output::spare(input, &output.path))?;
        output::check(&output.path)
    }
}

pub(crate) fn print(arguments: &PrintArgs, documents: &[Document]) -> anyhow::Result<()> {
    let all = |render: &dyn Fn(&Document) -> String| {
        documents.iter().map(render).collect::<Vec<_>>().join("\n")
    };
    let text = match arguments.format() {
        FormatArg::Table => {
            let style = style(arguments);
            all(&|document| render::console(document, &style))
        }
        FormatArg::Markdown => all(&render::markdown),
        FormatArg::Csv => all(&render::csv),
        FormatArg::Json => render::json(documents),
    };
    match &arguments.output {
        Some(output) => output.fill(&text),
        None => output::to_stdout(|out| out.write_all(text.as_bytes())),
    }
}

fn style(arguments: &PrintArgs) -> Style {
    let style = if arguments.output.is_some() { Style::PLAIN } else { terminal::stdout_style() };
    match arguments.color {
        ColorArg::Auto => style,
        ColorArg::Always => Style { colour: true, ..style },
        ColorArg::Never => Style { colour: false, ..style },
    }
}
