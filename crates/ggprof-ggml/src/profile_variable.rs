//! `GGML_PROFILE`, the variable of ggml's in-tree profiler.

use std::ffi::{CStr, OsStr};

/// As C asks for it.
pub const PROFILE_VARIABLE_IN_C: &CStr = c"GGML_PROFILE";
pub const PROFILE_VARIABLE: &str = match PROFILE_VARIABLE_IN_C.to_str() {
    Ok(name) => name,
    Err(_) => panic!("it is plain text"),
};

/// The file that a value of the variable names; `None` where it asks for a summary.
pub fn profile_file(value: &OsStr) -> Option<&OsStr> {
    let is_summary = value.is_empty() || value == "1" || value == "stdout";
    (!is_summary).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::profile_file;

    #[test]
    fn some_values_are_no_files() {
        for value in ["", "1", "stdout"] {
            assert_eq!(profile_file(value.as_ref()), None);
        }
        assert_eq!(profile_file("0".as_ref()), Some("0".as_ref()));
        assert_eq!(profile_file("a/stdout".as_ref()), Some("a/stdout".as_ref()));
    }
}
