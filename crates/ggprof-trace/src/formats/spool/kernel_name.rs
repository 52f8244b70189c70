//! Kernels as people call them. Compilers spell a kernel's types into its symbol
//! (`_Z13mul_mat_vec_qIL9ggml_type2ELi1EEvPKv`); the name is what is said before them.

/// The name in a symbol, or the symbol itself where it is not one of C++.
pub(super) fn readable(symbol: &str) -> String {
    parts(symbol).map_or_else(|| symbol.to_owned(), |parts| parts.join("::"))
}

fn parts(symbol: &str) -> Option<Vec<&str>> {
    let rest = symbol.strip_prefix("_Z")?;
    let (mut rest, nested) = match rest.strip_prefix('N') {
        Some(nested) => (nested.trim_start_matches(['K', 'V']), true),
        None => (rest, false),
    };
    let mut parts = Vec::new();
    // A name of the file's own is marked so.
    while let Some((name, behind)) = length_and_name(rest.strip_prefix('L').unwrap_or(rest)) {
        parts.push(name);
        rest = behind;
        if !nested {
            break;
        }
    }
    // Names without a name: "(anonymous namespace)".
    parts.retain(|part| !part.starts_with("_GLOBAL__N_"));
    (!parts.is_empty()).then_some(parts)
}

fn length_and_name(text: &str) -> Option<(&str, &str)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let length: usize = text[..digits].parse().ok()?;
    let name = text[digits..].get(..length)?;
    Some((name, &text[digits + length..]))
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn names_of_kernels() {
        for (symbol, name) in [
            ("_Z13mul_mat_vec_qIL9ggml_type2ELi1ELb0EEvPKvS2_", "mul_mat_vec_q"),
            ("_ZL13quantize_q8_1PKfPvlllll", "quantize_q8_1"),
            ("_ZN7cutlass6KernelI4GemmEEvv", "cutlass::Kernel"),
            ("_ZN12_GLOBAL__N_15helloEv", "hello"),
            ("sm90_xmma_gemm_f16f16_f32", "sm90_xmma_gemm_f16f16_f32"),
            ("memcpy, pinned", "memcpy, pinned"),
            ("_Z99short", "_Z99short"),
            ("_Z", "_Z"),
            ("_Z1äx", "_Z1äx"),
            ("", ""),
        ] {
            assert_eq!(readable(symbol), name, "{symbol}");
        }
    }
}
