//! `cargo xtask lint`: how the code should look.

use crate::shell;

pub(crate) fn run(_: &[String]) -> anyhow::Result<()> {
    shell::cargo(&["fmt", "--all", "--check"])?;
    shell::cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])
}
