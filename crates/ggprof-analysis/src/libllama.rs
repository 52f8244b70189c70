//! Whether a program computes with libllama, whose options can then be advised. Image programs, whisper.cpp and
//! others have options of their own, or none.

use ggprof_ggml::layer_of_weight;
use ggprof_trace::Trace;

/// Whether its calls were seen; where they are hidden, names that it gives to tensors tell.
pub fn uses_libllama(trace: &Trace) -> bool {
    let was_called = trace.batches.iter().any(|batch| !batch.is_from_positions);
    let named = || trace.nodes.ids().filter_map(|id| trace.tensor_name(id));
    was_called || named().any(is_given_by_libllama)
}

/// What a graph ends in, and what belongs to a layer: `result_output`, `Qcur-0 (reshaped)`, `blk.0.ffn_up`.
fn is_given_by_libllama(name: &str) -> bool {
    let name = name.split_whitespace().next().unwrap_or_default();
    let of_layer = name
        .rsplit_once('-')
        .is_some_and(|(stem, layer)| !stem.is_empty() && layer.parse::<u32>().is_ok());
    of_layer || name.starts_with("result_") || layer_of_weight(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggprof_trace::text_fixture;

    #[test]
    fn calls_and_names_tell() {
        for (text, expected) in [
            ("batch 0..9 0:0+3!1\nop CPU MUL_MAT 0..9 node_7 run=0", true),
            ("op CPU MUL_MAT 0..9 result_output run=0", true),
            ("op CPU MUL_MAT 0..9 Qcur-11 run=0", true),
            ("op CPU MUL_MAT 0..9 output_blocks.11 run=0", false),
            ("op CPU MUL_MAT 0..9 node_7 run=0", false),
        ] {
            let trace = text_fixture::parse(&format!("backend 0 CPU cpu\nrun 0..9\n{text}"));
            assert_eq!(uses_libllama(&trace), expected, "{text}");
        }
    }
}
