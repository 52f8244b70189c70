//! What can be written: one table decides by the name of the file, for all commands.

use crate::output;
use crate::recording::Recording;
use clap::ValueEnum;
use ggprof_report::tables::{self, EngineTable};
use ggprof_report::{documents, render, text, timeline, viewer};
use ggprof_spool::names;
use ggprof_trace::formats::{Packing, csv, ggml_json, perfetto, pprof};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Text,
    Csv,
    Markdown,
    Html,
    /// The recording itself.
    Recording,
    Perfetto,
    Pprof,
    /// The table of events. All tables have a directory of their own.
    Parquet,
}

/// How a report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Aligned, no wider than the terminal
    Table,
    /// Tables to paste into an issue
    Markdown,
    /// Raw numbers, all columns
    Json,
    /// Raw numbers, all columns, the tables only
    Csv,
}

/// A row of the table.
struct Row {
    format: Format,
    /// Without that of a compression; the first is the usual one.
    extensions: &'static [&'static str],
    /// How a report is printed to a file of such a name; `None` if it cannot be.
    report: Option<FormatArg>,
}

const TABLE: &[Row] = &[
    Row { format: Format::Json, extensions: &["json"], report: Some(FormatArg::Json) },
    Row { format: Format::Text, extensions: &["txt"], report: Some(FormatArg::Table) },
    Row { format: Format::Csv, extensions: &["csv"], report: Some(FormatArg::Csv) },
    Row { format: Format::Markdown, extensions: &["md"], report: Some(FormatArg::Markdown) },
    Row { format: Format::Html, extensions: &["html", "htm"], report: None },
    Row { format: Format::Recording, extensions: &[names::RECORDING_EXTENSION], report: None },
    Row { format: Format::Perfetto, extensions: &["pftrace", "perfetto-trace"], report: None },
    Row { format: Format::Pprof, extensions: &["pb"], report: None },
    Row { format: Format::Parquet, extensions: &["parquet"], report: None },
];

const PACKINGS: &[(&str, Packing)] = &[("gz", Packing::Gzip), ("zst", Packing::Zstd)];

/// What a name says about the file.
struct Name {
    /// The path before its extensions.
    stem: PathBuf,
    /// Without that of a compression; empty if there is none.
    extension: String,
    /// That of a compression; empty if there is none.
    packed: String,
    packing: Packing,
}

impl Name {
    fn of(path: &Path) -> Self {
        let last = extension_of(path);
        let packing = PACKINGS.iter().find(|(known, _)| last.eq_ignore_ascii_case(known));
        let (plain, packed, packing) = match packing {
            Some((_, packing)) => (path.with_extension(""), last, *packing),
            None => (path.to_owned(), String::new(), Packing::None),
        };
        let extension = extension_of(&plain);
        let stem = if extension.is_empty() { plain } else { plain.with_extension("") };
        Self { stem, extension, packed, packing }
    }

    fn row(&self) -> Option<&'static Row> {
        let is_it = |known: &&str| self.extension.eq_ignore_ascii_case(known);
        TABLE.iter().find(|row| row.extensions.iter().any(is_it))
    }
}

fn extension_of(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a file in a directory is taken for a recording, by its name.
pub(crate) fn is_called_recording(path: &Path) -> bool {
    Name::of(path).row().is_some_and(|row| row.format == Format::Recording)
}

/// A file that a recording is written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) path: PathBuf,
    format: Format,
    packing: Packing,
}

impl Output {
    /// By its name; one without an extension gets JSON. Otherwise what is wrong with the name.
    pub(crate) fn named(path: OsString) -> Result<Self, String> {
        let path = PathBuf::from(path);
        let name = Name::of(&path);
        let format = match name.row() {
            Some(row) => row.format,
            None if name.extension.is_empty() => Format::Json,
            None => return Err(unknown(&name)),
        };
        if format == Format::Parquet && name.packing != Packing::None {
            return Err(format!(
                "a .parquet is compressed inside, and readers want it as it is. Leave .{} away",
                name.packed
            ));
        }
        Ok(Self { path, format, packing: name.packing })
    }

    /// The recording itself.
    pub(crate) fn recording(path: PathBuf) -> Self {
        Self { path, format: Format::Recording, packing: Packing::None }
    }

    /// A page with the timeline, whose name need not say that it is one.
    pub(crate) fn page(path: OsString) -> Result<Self, String> {
        Self::given(path, Format::Html)
    }

    /// JSON of a kind that no name chooses, such as Chrome's.
    pub(crate) fn json(path: OsString) -> Result<Self, String> {
        Self::given(path, Format::Json)
    }

    /// What a machine can do, which is read without unpacking it.
    pub(crate) fn peaks(path: OsString) -> Result<PathBuf, String> {
        let output = Self::given(path, Format::Json)?;
        match output.packing {
            Packing::None => Ok(output.path),
            _ => Err("this file is small, and is not compressed. Name a .json".to_owned()),
        }
    }

    /// Lines for a program that does not unpack them.
    pub(crate) fn lines(path: OsString) -> Result<PathBuf, String> {
        let output = Self::given(path, Format::Text)?;
        match output.packing {
            Packing::None => Ok(output.path),
            _ => Err("programs that read this format cannot decompress it. Name a .txt".to_owned()),
        }
    }

    /// What an option chose. The name must not promise anything else.
    fn given(path: OsString, format: Format) -> Result<Self, String> {
        let path = PathBuf::from(path);
        let name = Name::of(&path);
        match name.row() {
            Some(row) if row.format != format => {
                let known = TABLE.iter().find(|row| row.format == format);
                let usual = known.map_or("", |row| row.extensions[0]);
                Err(format!("this option writes .{usual}; .{} is something else", name.extension))
            }
            _ => Ok(Self { path, format, packing: name.packing }),
        }
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.format == Format::Recording
    }

    /// Whether it can be written, before the work that it is about; `inputs` are not overwritten.
    pub(crate) fn check(&self, inputs: &[&Path]) -> anyhow::Result<()> {
        inputs.iter().try_for_each(|input| output::spare(input, &self.path))?;
        output::check(&self.path)
    }

    /// Writes to the file with `write`, compressed if its name says so.
    pub(crate) fn fill(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        output::to_file(&self.path, |out| self.packing.write(out, write))
    }

    /// Writes a recording; `copy` copies it as it was made.
    pub(crate) fn write(
        &self,
        recording: &Recording,
        copy: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Recording { trace, name, peaks } = recording;
        self.packing.write(out, |out| match self.format {
            Format::Json => ggml_json::write(trace, out),
            Format::Text => out.write_all(text::text(trace).as_bytes()),
            Format::Csv => csv::write(trace, out),
            Format::Markdown => {
                let summary = documents::summary(trace, name, peaks.as_ref());
                out.write_all(render::markdown(&summary).as_bytes())
            }
            Format::Html => viewer::write(trace, name, peaks.as_ref(), None, out),
            Format::Recording => copy(out),
            Format::Perfetto => perfetto::write(trace, &timeline::annotations(trace), out),
            Format::Pprof => pprof::write(&ggprof_report::pprof(trace), out),
            Format::Parquet => {
                tables::Recording::new(trace, None, peaks.as_ref()).write(EngineTable::Events, out)
            }
        })
    }

    /// The file of one among several processes or runs: `profile.42.json.gz`. Standard output, devices and
    /// pipes take one after the other.
    pub(crate) fn of_one(&self, which: &str) -> Self {
        if self.path.as_os_str() == "-" || output::is_device(&self.path) {
            return self.clone();
        }
        let Name { stem, extension, packed, .. } = Name::of(&self.path);
        let mut name = stem.file_name().unwrap_or_default().to_owned();
        for part in [which, &extension, &packed].into_iter().filter(|part| !part.is_empty()) {
            name.push(format!(".{part}"));
        }
        Self { path: stem.with_file_name(name), ..self.clone() }
    }
}

/// A file that a report is printed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Printout {
    pub(crate) path: PathBuf,
    /// What its name asks for.
    pub(crate) format: Option<FormatArg>,
    packing: Packing,
}

impl Printout {
    pub(crate) fn named(path: OsString) -> Result<Self, String> {
        let path = PathBuf::from(path);
        let name = Name::of(&path);
        let format = match name.row() {
            Some(row) => match row.report {
                Some(format) => Some(format),
                None => {
                    return Err(format!(
                        "a report is no .{}. It is printed as {}; `ggprof convert` writes other formats",
                        name.extension,
                        extensions(|row| row.report.is_some())
                    ));
                }
            },
            None if name.extension.is_empty() => None,
            None => return Err(unknown(&name)),
        };
        Ok(Self { path, format, packing: name.packing })
    }

    pub(crate) fn fill(&self, text: &str) -> anyhow::Result<()> {
        output::to_file(&self.path, |out| {
            self.packing.write(out, |out| out.write_all(text.as_bytes()))
        })
    }

    /// Whether a report of this format can be in it. Any of them is text.
    pub(crate) fn may_hold(&self, format: FormatArg) -> bool {
        self.format.is_none_or(|named| named == format || named == FormatArg::Table)
    }
}

fn unknown(name: &Name) -> String {
    format!(
        "ggprof writes no .{}. Its formats are {}, each also with .gz or .zst behind it, and .parquet",
        name.extension,
        extensions(|row| row.format != Format::Parquet)
    )
}

fn extensions(is_meant: impl Fn(&&Row) -> bool) -> String {
    let rows = TABLE.iter().filter(is_meant);
    rows.map(|row| format!(".{}", row.extensions[0])).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_formats() {
        for (name, format, packing) in [
            ("a.json", Format::Json, Packing::None),
            ("a.TXT", Format::Text, Packing::None),
            ("a.b.csv", Format::Csv, Packing::None),
            ("a.htm", Format::Html, Packing::None),
            ("a.ggprof", Format::Recording, Packing::None),
            ("a.md", Format::Markdown, Packing::None),
            ("a.pftrace", Format::Perfetto, Packing::None),
            ("a.pb.gz", Format::Pprof, Packing::Gzip),
            ("a.parquet", Format::Parquet, Packing::None),
            ("a", Format::Json, Packing::None),
            (".txt", Format::Json, Packing::None),
            ("-", Format::Json, Packing::None),
            ("/dev/fd/3", Format::Json, Packing::None),
            ("a.json.gz", Format::Json, Packing::Gzip),
            ("a.ggprof.ZST", Format::Recording, Packing::Zstd),
            ("a.gz", Format::Json, Packing::Gzip),
        ] {
            let output = Output::named(name.into()).expect(name);
            assert_eq!((output.format, output.packing), (format, packing), "{name}");
        }
        for name in ["a.parquet.gz", "a.xlsx", "a.jsn", "a.json.xz", "a.csv.gz.gz", "p.1"] {
            assert!(Output::named(name.into()).is_err(), "{name}");
        }
    }

    #[test]
    fn recordings_by_name() {
        for name in ["a.ggprof", "b/a.GGPROF", "a.ggprof.gz", "a.ggprof.Zst"] {
            assert!(is_called_recording(name.as_ref()), "{name}");
        }
        for name in ["a", "a.json", "a.ggprof.xz", "ggprof", "a.gz"] {
            assert!(!is_called_recording(name.as_ref()), "{name}");
        }
    }

    #[test]
    fn an_option_that_says_what_it_writes() {
        for name in ["a", "a.html", "a.HTM", "a.html.gz", "a.page"] {
            assert!(Output::page(name.into()).is_ok(), "{name}");
        }
        for name in ["a.json", "a.csv.gz", "a.ggprof"] {
            assert!(Output::page(name.into()).is_err(), "{name}");
        }
        assert!(Output::json("trace.json.gz".into()).is_ok());
        assert!(Output::json("trace.html".into()).is_err());
    }

    #[test]
    fn reports_by_name() {
        for (name, format) in [
            ("a.json", Some(FormatArg::Json)),
            ("a.csv.gz", Some(FormatArg::Csv)),
            ("a.md", Some(FormatArg::Markdown)),
            ("a.txt", Some(FormatArg::Table)),
            ("/dev/full", None),
        ] {
            assert_eq!(Printout::named(name.into()).expect(name).format, format, "{name}");
        }
        for name in ["a.html", "a.ggprof", "a.pdf"] {
            assert!(Printout::named(name.into()).is_err(), "{name}");
        }
        let holds = |name: &str, format| Printout::named(name.into()).expect(name).may_hold(format);
        assert!(holds("a.txt", FormatArg::Markdown) && holds("a", FormatArg::Json));
        assert!(holds("a.csv", FormatArg::Csv) && !holds("a.csv", FormatArg::Json));
    }

    #[test]
    fn outputs_of_several_processes_are_told_apart() {
        for (path, expected) in [
            ("a/p.json", "a/p.42.json"),
            ("p", "p.42"),
            ("p.x.txt", "p.x.42.txt"),
            ("p.JSON.gz", "p.42.JSON.gz"),
            ("p.zst", "p.42.zst"),
            ("-", "-"),
            ("/dev/null", "/dev/null"),
        ] {
            let output = Output::named(path.into()).expect(path).of_one("42");
            assert_eq!(output.path, Path::new(expected));
        }
    }
}
