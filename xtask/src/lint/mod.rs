//! `cargo xtask lint`: how the code should look, and what may know of what.

mod arrows;
mod map;
mod source;
mod words;

use anyhow::bail;

use crate::shell;

pub(crate) fn run(_: &[String]) -> anyhow::Result<()> {
    let root = shell::root();
    let findings = [arrows::check(&root)?, words::check(&root)?, map::check(&root)?].concat();
    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} arrows, words or names of files are not what they should be", findings.len());
    }
    shell::cargo(&["fmt", "--all", "--check"])?;
    shell::cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut doc = shell::command(&cargo, &["doc", "--workspace", "--no-deps"]);
    shell::run(doc.arg("--document-private-items").env("RUSTDOCFLAGS", "--deny warnings"))
}
