//! Whether a library calls one of its own functions directly. If the compiler inlined every call, a
//! copy of the function remains that is never called, and a hook there would see nothing.

use super::loaded_object::LoadedObject;
use crate::arch;

/// Whether any place of the object's code looks like a call of, or a jump to, the function.
pub(crate) fn reach(object: &LoadedObject, function: usize) -> bool {
    object.code().any(|segment| {
        // SAFETY: a loaded segment of code, which is readable.
        let code = unsafe { std::slice::from_raw_parts(segment.start as *const u8, segment.len()) };
        arch::calls(code, segment.start, function)
    })
}
