//! Tells which copy of ggml or libllama a function belongs to.

use std::ffi::CStr;

use crate::patch::loaded_object::{self, LoadedObject, is_ours};
use crate::patch::scope::Scope;
use crate::patch::{inline, linked_in};

/// A function of the ggml that a function leads to: the function itself or, if it belongs to
/// another profiler, one of the ggml that the profiler calls. An object with ggml linked in is its
/// own ggml.
pub(crate) fn of_ggml(function: usize) -> usize {
    let function = inline::function_behind(function);
    if is_ggmls(function) || linked_in::holds(function) {
        return function;
    }
    match find_anywhere(c"ggml_init") {
        0 => function,
        of_another => of_another,
    }
}

/// Whether the library that holds a function is a ggml, and not one that only
/// stands in for some of ggml's functions, as we do.
pub(crate) fn is_ggmls(function: usize) -> bool {
    is_beside(function, c"ggml_init")
}

/// The same for a function of this name, which may be libllama's.
pub(crate) fn is_own(symbol: &CStr, function: usize) -> bool {
    let is_llamas = symbol.to_bytes().starts_with(b"llama_");
    is_beside(function, if is_llamas { c"llama_backend_init" } else { c"ggml_init" })
}

fn is_beside(function: usize, other: &CStr) -> bool {
    let Some(object) = LoadedObject::containing(function) else { return false };
    let scope = Scope::of(&object.name);
    scope.is_some_and(|scope| object.holds(scope.find(other)))
}

/// The symbol in any ggml or libllama of the process, for a caller who cannot see its own: a
/// profiler that passes on a call to libraries opened with `RTLD_LOCAL`.
pub(crate) fn find_anywhere(symbol: &CStr) -> usize {
    let mut found = 0;
    let holds = |object: &LoadedObject| {
        let address = Scope::of(&object.name).map_or(0, |scope| scope.find(symbol));
        if object.holds(address) && !is_ours(address) && is_own(symbol, address) {
            found = address;
        }
        found != 0
    };
    loaded_object::all().iter().any(holds);
    found
}
