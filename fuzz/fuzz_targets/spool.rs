//! No recording file makes the reader panic, whatever its records say.
#![no_main]

mod everything;
mod spool_file;

use ggprof_trace::formats;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(mut trace) = formats::read(spool_file::around(data).as_slice()) else { return };
    everything::ask(&mut trace, data);
    formats::ggml_json::write(&trace, std::io::sink()).expect("a sink takes everything");
});
