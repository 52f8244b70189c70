//! Prints documents in the format that was asked for, to where it was.

use crate::cli::{ColorArg, FormatArg, PrintArgs};
use crate::{output, terminal};
use ggprof_report::Document;
use ggprof_report::render::{self, Style};

pub(crate) fn print(arguments: &PrintArgs, documents: &[Document]) -> anyhow::Result<()> {
    let all = |render: &dyn Fn(&Document) -> String| {
        documents.iter().map(render).collect::<Vec<_>>().join("\n")
    };
    let text = match arguments.format {
        FormatArg::Table => {
            let style = style(arguments);
            all(&|document| render::console(document, &style))
        }
        FormatArg::Markdown => all(&render::markdown),
        FormatArg::Csv => all(&render::csv),
        FormatArg::Json => render::json(documents),
    };
    match &arguments.output {
        Some(path) => output::to_file(path, |out| out.write_all(text.as_bytes())),
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
