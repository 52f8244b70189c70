//! What can be recorded of a program, how, and what to do about the rest.

use crate::document::{Block, Fact};
use crate::{Cell, Column, Document, Table, coverage_words};
use ggprof_trace::{Coverage, Covered, CoveredHow, CoveredWhy, Ggml, Trace};

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
    let seen = trace.coverage.iter().filter(|part| part.is_observed());
    let rows = seen.map(|part| {
        let (what, how) = (coverage_words::what(part.what), coverage_words::how(part.how));
        let cells = [part.subject.as_str(), what, coverage_words::clock(part), how];
        cells.map(Cell::text).to_vec()
    });
    let table = Table { key: "observed", columns: COLUMNS.to_vec(), rows: rows.collect() };
    document.heading("observed", "What will be recorded");
    document.table(table);
    let advice = trace.coverage.iter().filter_map(advice);
    document.blocks.extend(advice.map(Block::Warning));
}

fn ggml_words(ggml: &Ggml) -> String {
    let Ggml { library, version, commit, .. } = ggml;
    match (version.as_str(), commit.as_str()) {
        ("", _) => format!("{library} (its version is not known)"),
        (version, "" | "unknown") => format!("{library} {version}"),
        (version, commit) => format!("{library} {version} ({commit})"),
    }
}

/// What to do about something that is not seen, or not fully.
fn advice(part: &Coverage) -> Option<String> {
    let (subject, why) = (&part.subject, coverage_words::why(part));
    match (part.how, part.what) {
        (CoveredHow::Not, Covered::Ops) if part.why != CoveredWhy::NoGraphOfOneNode => {
            Some(format!(
                "{subject}: single ops are not seen ({why}), only the host's time for whole \
             splits. Record with --serialize to get the times of single ops."
            ))
        }
        (CoveredHow::Not, what) => {
            Some(format!("{subject}: {} are not seen: {why}.", coverage_words::what(what)))
        }
        (CoveredHow::AbortCallback, _) => {
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            Some(format!(
                "{subject}: ops are seen on the first thread only{why}. To see every thread, use a \
                 ggml from December 2024 or later, built as shared libraries without -Bsymbolic."
            ))
        }
        _ => None,
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
        for (subject, what, how, why, detail) in [
            ("CPU", Covered::Ops, CoveredHow::AbortCallback, CoveredWhy::CallsInlined, ""),
            ("CUDA0", Covered::Ops, CoveredHow::ActivityRecords, CoveredWhy::InSamples, ""),
            ("SYCL0", Covered::Splits, CoveredHow::FunctionTable, CoveredWhy::Untold, ""),
            ("SYCL0", Covered::Ops, CoveredHow::Not, CoveredWhy::Untold, "as an older agent said"),
            ("BLAS", Covered::Ops, CoveredHow::Not, CoveredWhy::NoGraphOfOneNode, ""),
        ] {
            let (subject, detail) = (subject.into(), detail.into());
            trace.coverage.push(Coverage { subject, what, how, why, detail });
        }
        let mut document = Document::default();
        observation(&mut document, &trace);
        expect![[r#"
            ggml  

            What will be recorded
              of     recorded  times by                seen by
              CPU    ops       the host, first thread  abort callback, first thread only
              CUDA0  ops       the device              activity records of the device
              SYCL0  splits    the host                function table
            ! CPU: ops are seen on the first thread only (the compiler inlined the calls that announce ops). To see every thread, use a ggml from December 2024 or later, built as shared libraries without -Bsymbolic.
            ! SYCL0: single ops are not seen (as an older agent said), only the host's time for whole splits. Record with --serialize to get the times of single ops.
            ! BLAS: ops are not seen: this ggml has no function that is known to make a graph of one node.
        "#]].assert_eq(&console(&document, &Style::PLAIN));
    }
}
