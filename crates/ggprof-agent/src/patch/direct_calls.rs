//! Whether a library calls a function of its own directly. A compiler that inlined
//! every call leaves a copy of the function that nobody reaches: a hook there would
//! promise what never comes.

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
