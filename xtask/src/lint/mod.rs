//! `cargo xtask lint`: the form of the code, who may depend on whom, and what the project is built
//! from.

mod arrows;
mod circles;
mod dependencies;
mod elsewhere;
mod imports;
mod map;
mod oldest;
mod rules;
mod source;
mod words;

use anyhow::bail;

use crate::shell;

/// What some checks need that is not part of every installation of Rust.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extras {
    /// They are made where it is there.
    AsInstalled,
    /// It is fetched, if it can be had.
    Fetched,
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let extras = match words[..] {
        [] => Extras::AsInstalled,
        ["--fetch"] => Extras::Fetched,
        _ => return Err(crate::misused("lint")),
    };
    let root = shell::root();
    let findings = [
        arrows::check(&root)?,
        circles::check(&root)?,
        words::check(&root)?,
        map::check(&root)?,
        rules::check(&root)?,
        dependencies::check(&root)?,
    ]
    .concat();
    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} imports, words, names of files, rules or dependencies to mend", findings.len());
    }
    dependencies::ask_cargo_deny()?;
    shell::cargo(&["fmt", "--all", "--check"])?;
    shell::cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])?;
    oldest::check(&root, extras)?;
    elsewhere::check(extras)?;
    let mut doc = shell::cargo_command(&["doc", "--workspace", "--no-deps"]);
    shell::run(doc.arg("--document-private-items").env("RUSTDOCFLAGS", "--deny warnings"))
}
