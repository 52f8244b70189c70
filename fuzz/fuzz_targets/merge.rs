//! No recordings make their merging panic, or what is asked of the trace that they become; and what is
//! written of it is read back the same.
//!
//! The first byte says how many there are and of what kind, the rest is divided among them.
#![no_main]

mod everything;
mod spool_file;

use ggprof_analysis::charge;
use ggprof_report::documents;
use ggprof_trace::formats::{self, ggml_json};
use ggprof_trace::{Trace, merge};
use libfuzzer_sys::fuzz_target;

/// Between recordings as JSON, which has no such byte.
const BETWEEN: u8 = 0;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let files: Vec<Vec<u8>> = if choice & 1 == 0 {
        rest.split(|&byte| byte == BETWEEN).map(<[u8]>::to_vec).collect()
    } else {
        let each = rest.len().div_ceil(usize::from(choice >> 1 & 3) + 2).max(1);
        rest.chunks(each).map(spool_file::around).collect()
    };
    let mut recordings: Vec<Trace> = Vec::new();
    for file in &files {
        let Ok(mut trace) = formats::read(file.as_slice()) else { continue };
        charge(&mut trace);
        recordings.push(trace);
    }
    if recordings.len() < 2 {
        return;
    }
    let Ok(mut trace) = merge(recordings) else { return };
    documents::merged(&trace, "name");
    let mut written = Vec::new();
    ggml_json::write(&trace, &mut written).expect("memory is never full");
    let again = ggml_json::read(written.as_slice()).expect("we read what we wrote");
    assert_eq!((&again.processes, &again.graph_runs), (&trace.processes, &trace.graph_runs));
    everything::ask(&mut trace, data);
});
