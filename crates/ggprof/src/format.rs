//! The format of a file, by its name.

use crate::input::Recording;
use ggprof_report::{text, viewer};
use ggprof_trace::formats::{csv, ggml_json};
use std::io::{self, Write};
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Text,
    Csv,
    Html,
    /// The recording itself, where there is one to copy.
    Recording,
}

impl Format {
    pub(crate) fn of(path: &Path) -> Self {
        let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
        match extension.as_ref().and_then(|extension| extension.to_str()) {
            Some("txt") => Self::Text,
            Some("csv") => Self::Csv,
            Some("html" | "htm") => Self::Html,
            Some("ggprof") => Self::Recording,
            _ => Self::Json,
        }
    }

    /// Writes what was read. The recording itself is gone by then, but JSON holds the same facts.
    pub(crate) fn write(self, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
        let Recording { trace, name, peaks } = recording;
        match self {
            Self::Text => out.write_all(text::text(trace).as_bytes()),
            Self::Csv => csv::write(trace, out),
            Self::Html => viewer::write(trace, name, peaks.as_ref(), None, out),
            Self::Json | Self::Recording => ggml_json::write(trace, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Format;
    use std::path::Path;

    #[test]
    fn names_and_formats() {
        for (name, format) in [
            ("a.json", Format::Json),
            ("a.TXT", Format::Text),
            ("a.b.csv", Format::Csv),
            ("a.htm", Format::Html),
            ("a.ggprof", Format::Recording),
            ("a", Format::Json),
            (".txt", Format::Json),
        ] {
            assert_eq!(Format::of(Path::new(name)), format, "{name}");
        }
    }
}
