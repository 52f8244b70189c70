//! Whether a library calls one of its own functions directly. If the compiler inlined every call, a
//! copy of the function remains that is never called, and a hook there would see nothing.

use std::ops::Range;

use super::loaded_object::LoadedObject;
use super::symbols::Function;
use crate::arch;

/// Whether any place of the object's code looks like a call of, or a jump to, the function.
pub(crate) fn reach(object: &LoadedObject, function: usize) -> bool {
    segments(object).any(|(start, code)| arch::calls(code, start, function))
}

/// Whether code of the object looks as if it jumped to behind the start of one of these ranges: parts of a
/// function that are seldom needed may be far away from it. One pass, for all functions of an object at once.
pub(super) fn jump_into(object: &LoadedObject, ranges: &[Range<usize>]) -> bool {
    segments(object).any(|(start, code)| arch::jumps_into(code, start, ranges))
}

/// Whether the function, or one that it calls, calls code that no compiler can see.
pub(super) fn lead_to_unknown(object: &LoadedObject, function: &Function) -> bool {
    let code = function.code();
    let whole = function.address..function.address + code.len();
    arch::calls_unknown((code, whole), |at| {
        segments(object).find_map(|(start, code)| code.get(at.checked_sub(start)?..))
    })
}

/// The code of an object that its user keeps loaded.
fn segments(object: &LoadedObject) -> impl Iterator<Item = (usize, &[u8])> {
    object.code().map(|segment| {
        // SAFETY: a loaded segment of code, which is readable.
        let code = unsafe { std::slice::from_raw_parts(segment.start as *const u8, segment.len()) };
        (segment.start, code)
    })
}
