//! ggml as others change it: other structs, other functions, linked into programs, stripped.
//! Each build is run with and without the agent and must do the same; and either every node is
//! recorded, or somebody says why not.

use std::process::Command;

use crate::source_ggml;

mod change;
mod finding;
mod form;
mod llama;
mod objects;
mod table;

pub use finding::Finding;
pub use table::{all, selected};

/// A ggml that was changed, and what is to be seen of it.
#[derive(Debug)]
pub struct Build {
    pub name: &'static str,
    change: &'static change::Change,
    form: form::Form,
    host: form::Host,
    expected: Expected,
    /// Quick to make, and unlike the others that are.
    is_selected: bool,
}

/// What a recording is to show.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// Every node, by this tier.
    Recorded(&'static str),
    /// Not every node, with these words among the reasons.
    Because(&'static str),
}

impl Build {
    fn command(&self) -> Result<Command, String> {
        let name = self.name.replace([' ', '/'], "-");
        let directory = source_ggml::directory()?.join("changed").join(name);
        form::command(self.change, self.form, self.host, &directory)
    }
}
