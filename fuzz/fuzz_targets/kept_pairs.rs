//! Nothing that is kept of earlier comparisons makes its reader panic, and what is read is written the same.
#![no_main]

use ggprof_analysis::diff::{read_pairs, usual, written_pairs};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(pairs) = read_pairs(data) else { return };
    assert!(read_pairs(&written_pairs(&pairs)).as_ref() == Some(&pairs));
    for pair in &pairs {
        usual(&pairs, &pair.of, &pair.phase, (1, 1));
    }
});
