//! `cargo xtask lint`: how the code should look, and what may know of what.

mod arrows;
mod source;
mod words;

use anyhow::bail;

use crate::shell;

pub(crate) fn run(_: &[String]) -> anyhow::Result<()> {
    let root = shell::root();
    let findings = [arrows::check(&root)?, words::check(&root)?].concat();
    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} of the project's arrows or words are where they do not belong", findings.len());
    }
    shell::cargo(&["fmt", "--all", "--check"])?;
    shell::cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])
}
