//! No input makes a reader, a question or a report panic.
#![no_main]

mod everything;

use ggprof_trace::formats;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(mut trace) = formats::read(data) {
        everything::ask(&mut trace, data);
    }
});
