//! ggml as its users have it: the libraries node-llama-cpp publishes on npm,
//! fetched once into the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::built::target_directory;
use crate::tool;

/// December 2024, December 2025, and the newest when this was written.
pub const VERSIONS: [&str; 3] = ["3.3.2", "3.14.5", "3.22.1"];
pub const NEWEST: &str = VERSIONS[2];
/// The last with backends as libraries but no call that announces an op.
pub const BEFORE_ANNOUNCED_OPS: &str = "3.3.0";

static FETCHING: Mutex<()> = Mutex::new(());

/// The directory of a version's libraries; `None`, with a sentence, when they
/// cannot be had.
pub fn libraries(version: &str) -> Option<PathBuf> {
    package("linux-x64", version)
}

/// The same without tables of symbols, as distributions ship libraries: of functions that are not
/// exported nothing is known. So old versions show their ops by the abort callback only.
pub fn stripped(version: &str) -> Option<PathBuf> {
    let libraries = libraries(version)?;
    tool::fetched("a stripped ggml", strip(version, &libraries))
}

fn strip(version: &str, libraries: &Path) -> Result<PathBuf, String> {
    let _one_at_a_time = FETCHING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let directory = target_directory().join("ggml").join(format!("stripped-{version}"));
    let text = |error: std::io::Error| error.to_string();
    if !directory.is_dir() {
        // Another test program may be at it.
        let fresh = directory.with_extension(std::process::id().to_string());
        std::fs::create_dir_all(&fresh).map_err(text)?;
        for file in std::fs::read_dir(libraries).map_err(text)?.flatten() {
            if file.file_name().to_string_lossy().contains(".so") {
                let mut strip = Command::new("strip");
                tool::output(strip.arg(file.path()).arg("-o").arg(fresh.join(file.file_name())))?;
            }
        }
        let _ = std::fs::rename(&fresh, &directory);
    }
    directory.canonicalize().map_err(text)
}

/// The same with the Vulkan backend, and the environment in which it finds Mesa's
/// software device. `None`, with a sentence, where that is not installed.
pub fn vulkan_libraries(version: &str) -> Option<(PathBuf, Vec<(&'static str, PathBuf)>)> {
    let icd = vulkan_device()?;
    let libraries = package("linux-x64-vulkan", version)?;
    let environment =
        vec![("VK_ICD_FILENAMES", icd), ("GGML_VK_VISIBLE_DEVICES", PathBuf::from("0"))];
    Some((libraries, environment))
}

/// The description of the Vulkan device that tests run on: Mesa's in software, unless another
/// is given. `None`, with a sentence, where it is not installed.
pub fn vulkan_device() -> Option<PathBuf> {
    let given = std::env::var_os("VK_ICD_FILENAMES").map(PathBuf::from);
    let icd = given.or_else(software_device).ok_or("install mesa-vulkan-drivers".to_owned());
    tool::fetched("a software Vulkan device", icd)
}

/// Its name differs between releases.
fn software_device() -> Option<PathBuf> {
    let files = std::fs::read_dir("/usr/share/vulkan/icd.d").ok()?.flatten();
    let mut paths = files.map(|file| file.path());
    paths.find(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("lvp_icd")))
}

pub(crate) fn package(name: &str, version: &str) -> Option<PathBuf> {
    let _one_at_a_time = FETCHING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let directory = target_directory().join("ggml").join(format!("{name}-{version}"));
    let libraries = directory.join("package/bins").join(name);
    if !libraries.is_dir() {
        tool::fetched(&format!("ggml {version}"), fetch(name, version, &directory))?;
    }
    libraries.canonicalize().ok()
}

fn fetch(name: &str, version: &str, directory: &Path) -> Result<(), String> {
    std::fs::create_dir_all(directory).map_err(|e| e.to_string())?;
    let package = format!("@node-llama-cpp/{name}@{version}");
    tool::output(Command::new("npm").args(["pack", "--silent", &package]).current_dir(directory))?;
    let archive = format!("node-llama-cpp-{name}-{version}.tgz");
    tool::output(Command::new("tar").args(["xzf", &archive]).current_dir(directory))?;
    Ok(())
}
