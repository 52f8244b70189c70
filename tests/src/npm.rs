//! Packages of the npm registry, each set installed once into a folder of the target directory.

use crate::built::target_directory;
use crate::tool;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

static INSTALLING: Mutex<()> = Mutex::new(());

/// The folder `name` with these packages (`name@version`) in its `node_modules`. Optional
/// packages and install scripts are left out.
pub fn installed(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let _one_at_a_time = INSTALLING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let directory = target_directory().join(name);
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let complete = directory.join("installed");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&complete).is_ok_and(|there| there == wanted) {
        return directory.canonicalize().map_err(|error| error.to_string());
    }
    let mut install = Command::new("npm");
    install
        .args(["install", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"])
        .args(["--no-save", "--prefix", "."])
        .args(packages)
        .current_dir(&directory);
    tool::output(&mut install)?;
    std::fs::write(complete, wanted).map_err(|error| error.to_string())?;
    directory.canonicalize().map_err(|error| error.to_string())
}
