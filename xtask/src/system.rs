//! What the tests need from the operating system.

use crate::shell;
use anyhow::bail;
use std::path::Path;
use std::process::{Command, Stdio};

/// Something that must be there, and the Debian package that brings it.
struct Needed {
    what: What,
    package: &'static str,
}

enum What {
    Program(&'static str),
    File(&'static str),
    /// A file of the directory whose name begins so.
    FileLike(&'static str, &'static str),
}

const NEEDED: &[Needed] = &[
    Needed { what: What::Program("bash"), package: "bash" },
    // A terminal for the tests of what is printed on terminals.
    Needed { what: What::Program("script"), package: "bsdutils" },
    // The small programs that the agent is tested in.
    Needed { what: What::Program("gcc"), package: "gcc" },
    Needed { what: What::Program("g++"), package: "g++" },
    // Libraries as distributions ship them.
    Needed { what: What::Program("strip"), package: "binutils" },
    // Programs that the agent cannot get into, and must not harm.
    Needed { what: What::Program("musl-gcc"), package: "musl-tools" },
    // Programs for aarch64, and the agent for them.
    Needed { what: What::Program("aarch64-linux-gnu-g++"), package: "g++-aarch64-linux-gnu" },
    // Published ggml libraries and an application on top of them.
    Needed { what: What::Program("node"), package: "nodejs" },
    Needed { what: What::Program("npm"), package: "npm" },
    // Crates with ggml in them.
    Needed { what: What::Program("cmake"), package: "cmake" },
    // Old libraries out of Python packages, in a program that is not position-independent.
    Needed { what: What::File("/usr/bin/python3"), package: "python3" },
    Needed { what: What::Program("pip3"), package: "python3-pip" },
    // The viewer's page is tested in a real browser.
    Needed { what: What::Program("chromium"), package: "chromium" },
    // A Vulkan device in software: several backends without a GPU.
    Needed {
        // Named after the processor or not, depending on the release.
        what: What::FileLike("/usr/share/vulkan/icd.d", "lvp_icd"),
        package: "mesa-vulkan-drivers",
    },
    Needed { what: What::File("/usr/lib/x86_64-linux-gnu/libvulkan.so.1"), package: "libvulkan1" },
    // Finds faults in the commands that the agent adds.
    Needed {
        what: What::File("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json"),
        package: "vulkan-validationlayers",
    },
];

/// Installs what is missing, or says which command does.
pub(crate) fn install_needed() -> anyhow::Result<()> {
    install_missing(NEEDED)
}

/// The same for a program that one task needs.
pub(crate) fn install(program: &'static str, package: &'static str) -> anyhow::Result<()> {
    install_missing(&[Needed { what: What::Program(program), package }])
}

/// The same for crates that make their bindings when they are compiled, as `llama-cpp-2` does: a compiler's
/// library with its headers. Where its name has another number, apt-get finds that nothing is missing.
pub(crate) fn install_for_bindings() -> anyhow::Result<()> {
    let what = What::FileLike("/usr/lib/x86_64-linux-gnu", "libclang-1");
    install_missing(&[Needed { what, package: "libclang-dev" }])
}

fn install_missing(needed: &[Needed]) -> anyhow::Result<()> {
    let missing = needed.iter().filter(|needed| !needed.what.is_there());
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
        bail!("install {packages} with: sudo sh -c '{install}'")
    }
}

impl What {
    fn is_there(&self) -> bool {
        match self {
            Self::Program(name) => succeeds("sh", &["-c", &format!("command -v {name}")]),
            Self::File(path) => Path::new(path).exists(),
            Self::FileLike(directory, beginning) => {
                std::fs::read_dir(directory).is_ok_and(|files| {
                    let names = files.flatten().map(|file| file.file_name());
                    names.into_iter().any(|name| name.to_string_lossy().starts_with(beginning))
                })
            }
        }
    }
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
