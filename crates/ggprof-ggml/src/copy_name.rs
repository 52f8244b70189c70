//! Names of the scheduler's copies.

/// The tensor that a name of the scheduler's is a copy of: it calls one `BACKEND#TENSOR#NUMBER`.
/// `None` for any other name.
pub fn copied_tensor(name: &str) -> Option<&str> {
    // A tensor's own name may have the character, the backend's and the number do not.
    let (_, rest) = name.split_once('#')?;
    rest.rsplit_once('#').map(|(tensor, _)| tensor)
}

#[cfg(test)]
mod tests {
    use super::copied_tensor;

    #[test]
    fn names_of_copies() {
        for (name, tensor) in [
            ("CUDA0#embd#0", Some("embd")),
            ("CUDA0#a#b#3", Some("a#b")),
            ("CPU##0", Some("")),
            ("embd", None),
            ("embd#0", None),
            ("", None),
        ] {
            assert_eq!(copied_tensor(name), tensor, "{name}");
        }
    }
}
