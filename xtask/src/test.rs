//! `cargo xtask test`: everything that must hold, on any machine.

use crate::{shell, system};

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    system::install_needed()?;
    let mut words = vec!["test", "--workspace"];
    words.extend(arguments.iter().map(String::as_str));
    shell::cargo(&words)
}
