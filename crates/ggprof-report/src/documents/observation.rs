//! What can be recorded of a program, how, and what to do about the rest.

use crate::document::{Block, Fact};
use crate::{Cell, Column, Document, Table};
use ggprof_trace::{Coverage, Ggml, Trace};

const COLUMNS: [Column; 4] = [
    Column::left("subject", "of", 0),
    Column::left("what", "recorded", 0),
    Column::left("clock", "times by", 0),
    Column::left("how", "seen by", 1),
];

/// Adds what a short recording shows: the copies of ggml, and a line for each thing seen.
pub fn observation(document: &mut Document, trace: &Trace) {
    let copies = trace.provenance.iter().flat_map(|facts| &facts.ggml);
    let copies = copies.map(|ggml| Fact::new("library", Cell::Text(ggml_words(ggml)), "{}"));
    document.fact("ggml", "ggml", copies.collect());
    let seen = trace.coverage.iter().filter(|part| part.how.is_some());
    let rows = seen.map(|part| {
        let how = part.how.as_deref().unwrap_or_default();
        let cells = [part.subject.as_str(), &part.what, clock(part, how), how];
        cells.map(Cell::text).to_vec()
    });
    let table = Table { key: "observed", columns: COLUMNS.to_vec(), rows: rows.collect() };
    document.heading("observed", "What will be recorded");
    document.table(table);
    let advice = trace.coverage.iter().filter_map(advice);
    document.blocks.extend(advice.map(Block::Warning));
}

fn ggml_words(ggml: &Ggml) -> String {
    let Ggml { library, version, commit } = ggml;
    match (version.as_str(), commit.as_str()) {
        ("", _) => format!("{library} (it does not state its version)"),
        (version, "" | "unknown") => format!("{library} {version}"),
        (version, commit) => format!("{library} {version} ({commit})"),
    }
}

/// Whose clock the times come from.
fn clock<'a>(part: &Coverage, how: &'a str) -> &'a str {
    match how {
        _ if part.what == "struct layouts" => "",
        _ if how.contains("device") || how.contains("activity") => "the device",
        _ if how.contains("serialized") => "the host, one op at a time",
        _ if how.contains("first thread") => "the host, first thread",
        _ if part.what == "ops" => "the host, every thread",
        _ => "the host",
    }
}

/// What to do about something that is not seen, or not fully.
fn advice(part: &Coverage) -> Option<String> {
    let Coverage { subject, what, how, reason } = part;
    match how.as_deref() {
        None if what == "ops" => Some(format!(
            "{subject}: single ops are not seen ({reason}), only the host's time for whole \
             splits. Record with --serialize for the times of single ops."
        )),
        None => Some(format!("{subject}: {what} are not seen: {reason}.")),
        Some(how) if how.contains("first thread") => {
            let why = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            Some(format!(
                "{subject}: ops are seen on the first thread only{why}. Every thread is seen of a \
                 ggml from December 2024 on, built as shared libraries without -Bsymbolic."
            ))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{Style, console};
    use expect_test::expect;

    #[test]
    fn one_line_for_each_thing_seen_and_a_sentence_for_the_rest() {
        let mut trace = Trace::default();
        for (subject, what, how, reason) in [
            ("CPU", "ops", Some("abort callback, first thread only"), "it announces no ops"),
            ("CUDA0", "ops", Some("the vendor's activity records"), ""),
            ("SYCL0", "splits", Some("function table"), ""),
            ("SYCL0", "ops", None, "the library does not announce them"),
        ] {
            trace.coverage.push(Coverage {
                subject: subject.into(),
                what: what.into(),
                how: how.map(str::to_owned),
                reason: reason.into(),
            });
        }
        let mut document = Document::default();
        observation(&mut document, &trace);
        expect![[r#"
            ggml  

            What will be recorded
              of     recorded  times by                seen by
              CPU    ops       the host, first thread  abort callback, first thread only
              CUDA0  ops       the device              the vendor's activity records
              SYCL0  splits    the host                function table
            ! CPU: ops are seen on the first thread only (it announces no ops). Every thread is seen of a ggml from December 2024 on, built as shared libraries without -Bsymbolic.
            ! SYCL0: single ops are not seen (the library does not announce them), only the host's time for whole splits. Record with --serialize for the times of single ops.
        "#]].assert_eq(&console(&document, &Style::PLAIN));
    }
}
