//! Whatever the JSON reader accepts, it reads back the same after we wrote it.
#![no_main]

use ggprof_trace::formats::ggml_json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(trace) = ggml_json::read(data) else { return };
    let mut written = Vec::new();
    ggml_json::write(&trace, &mut written).expect("memory is never full");
    let again = ggml_json::read(written.as_slice()).expect("we read what we wrote");
    assert_eq!(again.losses, trace.losses);
    let mut rewritten = Vec::new();
    ggml_json::write(&again, &mut rewritten).expect("memory is never full");
    assert!(written == rewritten);
});
