//! A real browser for the viewer's page: Chromium from the system, driven by playwright-core,
//! which is installed once into the target directory.

use crate::built::target_directory;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Any that drives the Chromium of a current distribution.
const PLAYWRIGHT: &str = "playwright-core@1.55.0";

static INSTALLING: Mutex<()> = Mutex::new(());

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
    let installed = install()?;
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

fn install() -> Result<PathBuf, String> {
    let _one_at_a_time = INSTALLING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let directory = target_directory().join("playwright");
    if !directory.join("node_modules/playwright-core/package.json").is_file() {
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        let output = Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--no-save", "--prefix", ".", PLAYWRIGHT])
            .current_dir(&directory)
            .output()
            .map_err(|error| format!("npm cannot be started: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
    }
    directory.canonicalize().map_err(|error| error.to_string())
}
