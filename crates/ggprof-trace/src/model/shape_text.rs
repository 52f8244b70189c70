//! Shapes as people write them: `[4096, 512] q4_0 x [4096, 1] f32`.

use super::node::Signature;
use super::tensor::{Shape, Tensor, TypeTable};

/// Dimensions without trailing ones: `[4096, 512]`; empty if there are none.
pub fn dimensions(ne: &Shape) -> String {
    if !(Tensor { type_id: -1, ne: *ne }).is_known() {
        return String::new();
    }
    let shown = ne.iter().rposition(|&n| n != 1).map_or(1, |last| last + 1);
    let list: Vec<String> = ne[..shown].iter().map(i64::to_string).collect();
    format!("[{}]", list.join(", "))
}

/// Dimensions and type: `[4096, 512] q4_0`.
pub fn tensor(tensor: &Tensor, types: &TypeTable) -> String {
    match (dimensions(&tensor.ne), tensor.type_id) {
        (dimensions, type_id) if type_id < 0 || dimensions.is_empty() => dimensions,
        (dimensions, type_id) => format!("{dimensions} {}", types.name(type_id)),
    }
}

/// All sources of an op; places that ggml left empty are passed over.
pub fn sources(signature: &Signature, types: &TypeTable) -> String {
    let sources = signature.sources.iter().map(|source| tensor(&source.tensor, types));
    sources.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" x ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_ones_are_dropped() {
        for (ne, expected) in [
            ([4096, 512, 1, 1], "[4096, 512]"),
            ([4096, 1, 1, 1], "[4096]"),
            ([64, 1, 32, 1], "[64, 1, 32]"),
            ([1, 1, 1, 1], "[1]"),
            ([1024, 0, 1, 1], "[1024, 0]"),
            ([0, 1, 1, 1], "[0]"),
            ([4096, 7, 0, 1], "[4096, 7, 0]"),
            ([0, 0, 0, 0], ""),
            ([-3, 5, 1, 1], ""),
        ] {
            assert_eq!(dimensions(&ne), expected, "{ne:?}");
        }
    }
}
