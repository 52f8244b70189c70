//! What a stream is connected to, and so how a table should look on it.

use ggprof_report::render::Style;
use std::io::{self, IsTerminal};
#[cfg(unix)]
use std::os::fd::AsFd as AsStream;
#[cfg(windows)]
use std::os::windows::io::AsHandle as AsStream;

pub(crate) fn stdout_style() -> Style {
    style(io::stdout())
}

pub(crate) fn stderr_style() -> Style {
    style(io::stderr())
}

/// A terminal gets lines that fit and colours, unless `NO_COLOR` is set; a file and a pipe get
/// everything.
fn style(stream: impl IsTerminal + AsStream) -> Style {
    if !stream.is_terminal() {
        return Style::PLAIN;
    }
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let width = terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
    Style { width, colour: !no_colour }
}
