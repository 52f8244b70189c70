//! A real browser for the viewer's page: Chromium from the system, driven by playwright-core,
//! which is installed once into the target directory.

use crate::npm;
use std::path::Path;
use std::process::{Command, Stdio};

/// Any that drives the Chromium of a current distribution.
const PLAYWRIGHT: &str = "playwright-core@1.55.0";

/// A command that runs a script of `viewer/test/`. `None`, with a sentence, where there is no
/// browser to run it in.
pub fn script(name: &str) -> Option<Command> {
    match prepared(name) {
        Ok(command) => Some(command),
        Err(reason) => {
            let required = std::env::var("GGPROF_REQUIRE_BROWSER").is_ok_and(|value| value == "1");
            assert!(!required, "the viewer cannot be tested: {reason}");
            eprintln!("skipped, because the viewer cannot be tested here: {reason}");
            None
        }
    }
}

fn prepared(name: &str) -> Result<Command, String> {
    let installed = npm::installed("playwright", &[PLAYWRIGHT])?;
    let chromium = Command::new("chromium")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !chromium.is_ok_and(|status| status.success()) {
        return Err("chromium is not installed".to_owned());
    }
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../viewer/test");
    let mut command = Command::new("node");
    command.arg(scripts.join(name)).env("GGPROF_PLAYWRIGHT", installed);
    Ok(command)
}
