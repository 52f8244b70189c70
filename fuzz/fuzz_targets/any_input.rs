//! No input makes a reader, a question or a report panic.
#![no_main]

use ggprof_analysis::{copy_consumers, phases};
use ggprof_report::documents::{self, By};
use ggprof_report::render::{self, Style};
use ggprof_trace::formats::{self, chrome, csv};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(trace) = formats::read(data) else { return };
    let mut all = vec![documents::summary(&trace, "name"), documents::inefficiency(&trace, 3)];
    for by in [By::Op, By::Backend, By::Shape, By::Layer, By::Phase] {
        all.push(documents::by(&trace, by));
    }
    all.push(documents::top_ops(&trace, 2));
    all.push(documents::top_kernels(&trace, 2));
    for document in &all {
        let text = render::console(document, &Style { width: Some(80), colour: false });
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
        render::markdown(document);
        render::html(document, "name");
        render::csv(document);
    }
    render::json(&all);
    ggprof_report::text::text(&trace);
    phases(&trace);
    let links = copy_consumers(&trace);
    let annotations = chrome::Annotations { phases: Vec::new(), links };
    chrome::write(&trace, &annotations, std::io::sink()).expect("a sink takes everything");
    csv::write(&trace, std::io::sink()).expect("a sink takes everything");
});
