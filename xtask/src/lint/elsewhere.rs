//! Whether the command compiles for the systems on which recordings are only read, where Rust's
//! library for them is installed: to fetch two of them and to compile everything twice more takes too
//! long to be done each time.

use crate::shell;

const TARGETS: [&str; 2] = ["x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

pub(super) fn check() -> anyhow::Result<()> {
    for target in TARGETS {
        match shell::has_installed_library_for(target) {
            true => {
                let words = ["clippy", "--package", "ggprof", "--target", target];
                shell::cargo(&[&words[..], &["--", "--deny", "warnings"]].concat())?;
            }
            false => eprintln!("not checked: `rustup target add {target}` brings what it takes"),
        }
    }
    Ok(())
}
