//! Kernels as people call them. Compilers spell a kernel's types into its symbol
//! (`_Z13mul_mat_vec_qIL9ggml_type2ELi1EEvPKv`); the name is what is left without them.

use super::tables::Tables;
use crate::model::{StringId, Trace};
use cpp_demangle::{BorrowedSymbol, DemangleNodeType, DemangleOptions, DemangleWrite};
use hashbrown::HashMap;
use std::fmt;

/// The names of a recording's kernels, each looked at once.
#[derive(Debug, Default)]
pub(super) struct KernelNames(HashMap<u32, StringId>);

impl KernelNames {
    /// The name for a text of the file.
    pub(super) fn of(&mut self, tables: &Tables, trace: &mut Trace, text: u32) -> StringId {
        let intern = || trace.strings.intern(&readable(tables.text(text)));
        *self.0.entry(text).or_insert_with(intern)
    }
}

/// The name in a symbol, or the symbol itself where it is not one of C++.
fn readable(symbol: &str) -> String {
    name_in(symbol).filter(|name| !name.is_empty()).unwrap_or_else(|| symbol.to_owned())
}

fn name_in(symbol: &str) -> Option<String> {
    let mangled = Some(symbol.as_bytes()).filter(|bytes| bytes.starts_with(b"_Z"))?;
    let (parsed, _) = BorrowedSymbol::with_tail(mangled).ok()?;
    let mut name = Name::default();
    let options = DemangleOptions::new().no_params().no_return_type();
    parsed.structured_demangle(&mut name, &options).ok()?;
    // The brackets stand around the arguments; a namespace without a name is not one to show.
    Some(name.text.replace("<>", "").replace("(anonymous namespace)::", ""))
}

/// Takes in a demangled name, less the arguments of its templates.
#[derive(Default)]
struct Name {
    text: String,
    /// Which of the parts that are open are arguments of templates.
    open: Vec<bool>,
    /// Everything that came, left out or not.
    bytes: usize,
}

/// A symbol of a few letters can stand for a text without end.
const MOST_BYTES: usize = 64 * 1024;

impl DemangleWrite for Name {
    fn push_demangle_node(&mut self, node: DemangleNodeType) {
        self.open.push(node == DemangleNodeType::TemplateArgs);
    }

    fn pop_demangle_node(&mut self) {
        self.open.pop();
    }

    fn write_string(&mut self, text: &str) -> fmt::Result {
        self.bytes += text.len();
        if !self.open.contains(&true) {
            self.text.push_str(text);
        }
        if self.bytes > MOST_BYTES { Err(fmt::Error) } else { Ok(()) }
    }
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
            ("_ZN3cub6detail6reduceIiE6kernelIfEEvT_", "cub::detail::reduce::kernel"),
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

    /// Without a bound this would take days.
    #[test]
    fn a_short_symbol_that_means_an_endless_text_is_shown_as_it_is() {
        // A pair of two of the pair before, and so on; each is known by a digit.
        let digits = (2..36).filter_map(|digit| char::from_digit(digit, 36));
        let pair = |digit: char| format!("S1_IS{digit}_S{digit}_E").to_uppercase();
        let pairs: String = digits.map(pair).collect();
        let symbol = format!("_Z1fI1A1PIS0_S0_E{pairs}Evv");
        assert_eq!(readable(&symbol), symbol);
        assert_eq!(readable("_Z1fI1A1PIS0_S0_ES1_IS2_S2_EEvv"), "f");
    }
}
