//! What people do to ggml's source, as text to replace: nothing of it is applied to a file of
//! another text.

pub(super) mod backends;
pub(super) mod calls;
pub(super) mod graphs;
pub(super) mod tensors;

/// A changed ggml.
#[derive(Debug, Hash, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) name: &'static str,
    pub(super) edits: &'static [Edit],
    /// For the compiler, of ggml's sources and of programs.
    pub(super) flags: &'static [&'static str],
}

/// Text of a file, relative to ggml's directory, and what stands in its place.
#[derive(Debug, Hash, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) file: &'static str,
    from: &'static str,
    to: &'static str,
}

impl Edit {
    /// The text with every occurrence replaced; an error where there is none.
    pub(super) fn applied(&self, text: &str) -> Result<String, String> {
        if !text.contains(self.from) {
            return Err(format!("{} has no text to replace:\n{}", self.file, self.from));
        }
        Ok(text.replace(self.from, self.to))
    }
}

const fn edit(file: &'static str, from: &'static str, to: &'static str) -> Edit {
    Edit { file, from, to }
}

const fn change(name: &'static str, edits: &'static [Edit]) -> Change {
    Change { name, edits, flags: &[] }
}

pub(super) const UNCHANGED: Change = change("unchanged", &[]);
