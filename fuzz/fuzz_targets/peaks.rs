//! No file of peaks makes a report panic that holds a recording against it.
#![no_main]

use ggprof_analysis::{Peaks, charge};
use ggprof_report::documents::{self, By};
use ggprof_report::render::{self, Style};
use ggprof_trace::{Trace, formats};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// With ops and copies, on the CPU and on a device.
static RECORDING: LazyLock<Trace> = LazyLock::new(|| {
    let bytes = include_bytes!("../seeds/third_generation.json");
    let mut trace = formats::read(&bytes[..]).expect("one of ours");
    charge(&mut trace);
    trace
});

fuzz_target!(|data: &[u8]| {
    let Ok(peaks) = serde_json::from_slice::<Peaks>(data) else { return };
    let trace = &*RECORDING;
    peaks.fit(trace);
    let all = [
        documents::peaks(&peaks),
        documents::summary(trace, "name", Some(&peaks)),
        documents::by(trace, By::Op, Some(&peaks)),
        documents::by(trace, By::Copy, Some(&peaks)),
        documents::top_ops(trace, 2, Some(&peaks)),
        documents::explain(trace, "name", Some(&peaks)),
    ];
    for document in &all {
        let text = render::console(document, &Style { width: Some(80), colour: false });
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
        render::markdown(document);
    }
    render::json(&all);
    let again = serde_json::to_vec(&peaks).expect("it was read");
    serde_json::from_slice::<Peaks>(&again).expect("what was read is written so that it is read");
});
