//! All that can be asked of a recording and written about it.

use ggprof_analysis::diff::{self, Depth};
use ggprof_analysis::{catalogue, charge, distinct_ops, phases};
use ggprof_report::Document;
use ggprof_report::documents::{self, By, Compared};
use ggprof_report::render::{self, Style};
use ggprof_report::{tables, timeline, viewer};
use ggprof_trace::Trace;
use ggprof_trace::formats::op_lines::{self, Numbers};
use ggprof_trace::formats::{chrome, csv, perfetto, pprof};
use std::io::sink;

/// Writing a page takes longer than all the rest, so that is for some inputs only.
const PAGE_OF: usize = 16;

/// Longer recordings have more seconds than there is time to print.
const SECONDS_OF_NS: u64 = 1_000_000_000_000;

/// The questions about the trace that was read from `input`.
pub fn ask(trace: &mut Trace, input: &[u8]) {
    charge(trace);
    let trace = &*trace;
    let mut all = vec![documents::summary(trace, "name", None), documents::inefficiency(trace, 3)];
    let totals = [By::Op, By::Backend, By::Shape, By::Layer, By::Phase, By::Memory];
    let times = [By::Request, By::Run, By::Depth];
    let places = [By::Placement, By::Copy, By::Expert];
    for by in totals.into_iter().chain(times).chain(places) {
        all.push(documents::by(trace, by, None));
    }
    if trace.span_ns().is_some_and(|(start_ns, end_ns)| end_ns - start_ns < SECONDS_OF_NS) {
        all.push(documents::by(trace, By::Second, None));
    }
    all.push(documents::explain(trace, "name", None));
    all.push(documents::top_ops(trace, 2, None));
    all.push(documents::top_kernels(trace, 2));
    all.extend(compared(trace));
    for document in &all {
        let text = render::console(document, &Style { width: Some(80), colour: false });
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
        render::markdown(document);
        render::csv(document);
    }
    render::json(&all);
    ggprof_report::text::text(trace);
    phases(trace);
    catalogue::entry(trace, "name".to_owned());
    if input.len().is_multiple_of(PAGE_OF) {
        viewer::write(trace, "name", None, Some(100), &mut sink())
            .expect("a sink takes everything");
    }
    let annotations = timeline::annotations(trace);
    chrome::write(trace, &annotations, sink()).expect("a sink takes everything");
    perfetto::write(trace, &annotations, sink()).expect("a sink takes everything");
    csv::write(trace, sink()).expect("a sink takes everything");
    pprof::write(&ggprof_report::pprof(trace), sink()).expect("a sink takes everything");
    let recording = tables::Recording::new(trace, None, None);
    for table in tables::TABLES {
        recording.write(table, &mut sink()).expect("a sink takes everything");
    }
    let ops: Vec<_> = distinct_ops(trace).iter().map(|op| op.node).collect();
    for line in op_lines::lines(trace, &ops, &Numbers::of_recording(trace)).lines {
        // As many words as it says, and no number that is not one.
        let mut words: Vec<&str> = line.split(' ').collect();
        assert!(words.pop().is_some_and(|name| !name.is_empty()));
        let words: Vec<i64> = words.iter().map(|word| word.parse().expect("a number")).collect();
        let sources = words[23] as usize;
        assert!(words[6] == 16 && sources <= 10 && words.len() == 24 + 9 * sources);
        assert!(words[2..6].iter().all(|&n| n > 0));
    }
}

/// The trace held against itself, alone and as several recordings a side, and the report of it.
fn compared(trace: &Trace) -> Vec<Document> {
    let fused = diff::fusions(trace);
    let ledger = diff::ledger(trace, &fused);
    let settings = [diff::settings(trace)];
    let differences = diff::differences(&settings, &settings);
    diff::pairs([(&ledger, &diff::identity(trace)); 2].into_iter());
    diff::spreads(std::slice::from_ref(&ledger));
    let mut all = vec![documents::issue(trace, None)];
    for depth in [Depth::Kernel, Depth::Backend] {
        let side = vec![ledger.clone(); 2];
        for (a, b) in [(1, 1), (1, 2), (2, 2)] {
            let diff = diff::compare(&side[..a], &side[..b], depth);
            let names = [vec!["a".to_owned(); a], vec!["b".to_owned(); b]];
            let (diff, differences) = (&diff, &differences);
            let compared = Compared { diff, differences, names, warnings: vec![], most: Some(2) };
            all.push(documents::diff(&compared));
            all.push(documents::issue(trace, Some(diff)));
        }
    }
    all
}
