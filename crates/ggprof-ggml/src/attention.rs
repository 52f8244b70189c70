//! Which nodes attend to a cache of keys and values.

/// What a node of attention does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionStep {
    /// All of it (flash attention): queries, keys, values and the mask are its sources.
    Whole,
    /// Queries times keys.
    Scores,
    /// What each token attends to, and how much.
    SoftMax,
    /// The values by that.
    Values,
}

/// The op that does all of it.
pub const WHOLE_ATTENTION: &str = "FLASH_ATTN_EXT";
/// The op that also chooses experts, and next tokens.
pub const SOFT_MAX: &str = "SOFT_MAX";

/// `None` for a node that is no attention, or of which the names do not tell. Without flash attention it is
/// three ops, which libllama calls `kq-3`, `kq_soft_max-3` (older versions `kq_soft_max_ext-3`) and `kqv-3`;
/// `kqv_out-3` is a product with a weight.
pub fn attention_step(op_name: &str, tensor: Option<&str>) -> Option<AttentionStep> {
    if op_name == WHOLE_ATTENTION {
        return Some(AttentionStep::Whole);
    }
    let stem = tensor?.split(['-', ' ']).next()?;
    match (op_name, stem) {
        ("MUL_MAT", "kq") => Some(AttentionStep::Scores),
        (SOFT_MAX, "kq_soft_max" | "kq_soft_max_ext") => Some(AttentionStep::SoftMax),
        ("MUL_MAT", "kqv") => Some(AttentionStep::Values),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{AttentionStep, attention_step};

    #[test]
    fn attention_is_told_from_what_only_looks_like_it() {
        for (op, tensor, step) in [
            ("FLASH_ATTN_EXT", "node_21", Some(AttentionStep::Whole)),
            ("MUL_MAT", "kq-3", Some(AttentionStep::Scores)),
            ("SOFT_MAX", "kq_soft_max-3", Some(AttentionStep::SoftMax)),
            ("SOFT_MAX", "kq_soft_max_ext-3", Some(AttentionStep::SoftMax)),
            ("MUL_MAT", "kqv-3", Some(AttentionStep::Values)),
            ("MUL_MAT", "kqv_out-3", None),
            ("SOFT_MAX", "ffn_moe_probs-3", None),
            ("SOFT_MAX", "node_21", None),
            ("ADD", "kq-3", None),
        ] {
            assert_eq!(attention_step(op, Some(tensor)), step, "{op} {tensor}");
        }
        assert_eq!(attention_step("SOFT_MAX", None), None);
    }
}
