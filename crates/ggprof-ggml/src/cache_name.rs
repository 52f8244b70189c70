//! Names of tensors that keep what a model has read.

/// Whether a tensor is part of a cache: of keys and values, or of a recurrent model's states.
/// libllama calls them `cache_k_l0`, `cache_v_l0`, `cache_r_l0` and the like; their buffers have
/// no usage of their own in ggml.
pub fn is_of_cache(tensor: &str) -> bool {
    tensor.starts_with("cache_")
}

/// What the names of cached keys begin with, and those of cached values.
pub const CACHED_KEYS: &str = "cache_k_l";
pub const CACHED_VALUES: &str = "cache_v_l";

#[cfg(test)]
mod tests {
    use super::is_of_cache;

    #[test]
    fn names_of_caches() {
        for name in ["cache_k_l0", "cache_v_l11", "cache_idx_k_l3", "cache_s_l0"] {
            assert!(is_of_cache(name), "{name}");
        }
        for name in ["", "blk.0.attn_k.weight", "Kcur-0", "my_cache_k"] {
            assert!(!is_of_cache(name), "{name}");
        }
    }
}
