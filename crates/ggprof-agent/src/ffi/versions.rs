//! What libraries say of their versions. Only the names of these functions are known, so they are tried
//! out first (`rehearsal`).

use std::ffi::c_char;

use super::api::optional_text;
use super::rehearsal;

/// A function that returns a text that stays.
pub(crate) type Says = Option<unsafe extern "C-unwind" fn() -> *const c_char>;

/// No version is longer.
const LONGEST: usize = 256;

/// What each of them says; all say nothing if one of them returns something else than a text.
pub(crate) fn said_by<const N: usize>(functions: [Says; N]) -> [&'static [u8]; N] {
    const NOTHING: &[u8] = b"";
    let are_short = || functions.iter().all(|function| optional_text(*function).len() <= LONGEST);
    let are_there = functions.iter().any(Option::is_some);
    match are_there && rehearsal::rehearse(|_| are_short()) == Ok(true) {
        true => functions.map(optional_text),
        false => [NOTHING; N],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C-unwind" fn version() -> *const c_char {
        c"0.28.0".as_ptr()
    }

    unsafe extern "C-unwind" fn number() -> *const c_char {
        std::ptr::without_provenance(28)
    }

    #[test]
    fn only_texts_are_believed() {
        assert_eq!(said_by([Some(version), None]), [b"0.28.0".as_slice(), b""]);
        assert_eq!(said_by([Some(version), Some(number)]), [b""; 2]);
        assert_eq!(said_by([None]), [b""; 1]);
    }
}
