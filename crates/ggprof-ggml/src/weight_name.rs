//! Names of a model's weights, as they are in its file.

/// Whether a tensor is a weight: `blk.3.attn_q.weight`, `output_norm.bias`.
pub fn is_weight(name: &str) -> bool {
    name.ends_with(".weight") || name.ends_with(".bias")
}

/// Whether a weight is that of all experts of a layer: `blk.3.ffn_up_exps.weight`.
pub fn is_of_experts(weight: &str) -> bool {
    weight.contains("_exps")
}

/// The layer's number and the rest of the name: `blk.3.attn_q.weight` is `attn_q.weight` of the third.
/// `None` for weights of no layer, and all other tensors.
pub fn layer_of_weight(name: &str) -> Option<(u32, &str)> {
    let (number, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_weights() {
        let name = "blk.31.ffn_up_exps.weight";
        assert!(is_weight(name) && is_of_experts(name));
        assert_eq!(layer_of_weight(name), Some((31, "ffn_up_exps.weight")));
        assert!(is_weight("output_norm.bias") && !is_of_experts("output.weight"));
        for name in ["output.weight", "blk.weight", "blk.x.weight", "ffn_up-3", "cache_k_l3", ""] {
            assert_eq!(layer_of_weight(name), None, "{name}");
        }
        assert!(!is_weight("cache_k_l0") && !is_weight("ffn_out-3"));
    }
}
