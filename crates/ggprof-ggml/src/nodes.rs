//! Which nodes of a graph a backend computes, and what kind of node one is.

/// Whether an op of this name computes anything; the others only say how to look at what is there.
pub fn computes(op_name: impl AsRef<[u8]>) -> bool {
    !matches!(op_name.as_ref(), b"NONE" | b"RESHAPE" | b"VIEW" | b"PERMUTE" | b"TRANSPOSE")
}

/// Whether an op of this name multiplies matrices; its first source has the weights.
pub fn is_matrix_product(op_name: &str) -> bool {
    matches!(op_name, "MUL_MAT" | "MUL_MAT_ID")
}

/// Whether a node has ggml's mark of one to compute, which newer versions give.
pub fn is_marked(flags: u32) -> bool {
    const FLAG_COMPUTE: u32 = 16;
    flags & FLAG_COMPUTE != 0
}

/// Whether the program fills a tensor with these flags before it computes the graph.
pub fn is_input(flags: u32) -> bool {
    const FLAG_INPUT: u32 = 1;
    flags & FLAG_INPUT != 0
}

/// Whether a node with these flags is to be computed. Versions that mark nodes skip all others, so
/// that depends on whether any node of the graph is marked.
pub fn is_wanted(flags: u32, any_is_marked: bool) -> bool {
    !any_is_marked || is_marked(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_look_at_a_tensor_compute_nothing() {
        assert!(!computes("VIEW") && !computes(b"NONE"));
        assert!(computes("CONT") && computes(b"MUL_MAT") && computes(""));
    }

    #[test]
    fn products_of_matrices() {
        assert!(is_matrix_product("MUL_MAT") && is_matrix_product("MUL_MAT_ID"));
        assert!(!is_matrix_product("MUL") && !is_matrix_product("OUT_PROD"));
    }

    #[test]
    fn without_marks_every_node_is_wanted() {
        assert!(is_wanted(0, false) && is_wanted(16 | 2, true));
        assert!(!is_wanted(2, true));
    }
}
