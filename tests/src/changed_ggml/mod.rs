//! ggml as others change it: other structs, other functions, linked into programs, stripped.

use std::process::Command;
use std::sync::OnceLock;

use crate::source_ggml;
use crate::trial::{Expected, Trial};

mod change;
mod form;
mod llama;
mod objects;
mod table;

/// All builds.
pub fn all() -> Vec<Trial> {
    table::builds().into_iter().map(Build::trial).collect()
}

/// Those that are quick to make and unlike each other.
pub fn selected() -> Vec<Trial> {
    let all = table::builds().into_iter();
    all.filter(|build| build.is_selected).map(Build::trial).collect()
}

/// A ggml that was changed, and what is to be seen of it.
#[derive(Debug)]
struct Build {
    name: &'static str,
    change: &'static change::Change,
    form: form::Form,
    host: form::Host,
    expected: Expected,
    is_selected: bool,
}

impl Build {
    fn trial(self) -> Trial {
        let Build { name, change, form, host, expected, .. } = self;
        let built = OnceLock::new();
        let build = move || {
            let place = name.replace(' ', "-");
            let directory = source_ggml::directory()?.join("changed").join(place);
            form::program(change, form, host, &directory)
        };
        let command = move || {
            let mut command = Command::new(built.get_or_init(build).clone()?);
            // A debugger would be started to print where it was.
            command.args(host.arguments()?).env("GGML_NO_BACKTRACE", "1");
            Ok(command)
        };
        let (name, computes) = (format!("ggml {}: {name}", source_ggml::VERSION), host.computes());
        Trial { name, command: Box::new(command), computes, expected }
    }
}
