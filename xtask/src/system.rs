//! Programs that the tests need from the operating system.

use crate::shell;
use anyhow::bail;
use std::process::{Command, Stdio};

/// A program and the Debian package that brings it.
struct Needed {
    program: &'static str,
    package: &'static str,
}

const NEEDED: &[Needed] = &[
    Needed { program: "bash", package: "bash" },
    // A terminal for the tests of what is printed on terminals.
    Needed { program: "script", package: "bsdutils" },
];

/// Installs what is missing, or says which command does.
pub(crate) fn install_needed() -> anyhow::Result<()> {
    let missing = NEEDED.iter().filter(|needed| !is_installed(needed.program));
    let packages: Vec<&str> = missing.map(|needed| needed.package).collect();
    if packages.is_empty() {
        return Ok(());
    }
    let packages = packages.join(" ");
    let install =
        format!("apt-get update && apt-get install --yes --no-install-recommends {packages}");
    if succeeds("sh", &["-c", "test $(id -u) = 0"]) {
        shell::run(&mut shell::command("sh", &["-c", &install]))
    } else if succeeds("sudo", &["-n", "true"]) {
        shell::run(&mut shell::command("sudo", &["-n", "sh", "-c", &install]))
    } else {
        bail!("the tests need {packages}; install them with: sudo sh -c '{install}'")
    }
}

fn is_installed(program: &str) -> bool {
    succeeds("sh", &["-c", &format!("command -v {program}")])
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
