//! Packages of the Python index: wheels or sources, each fetched once into a folder of the target
//! directory and unpacked. Nothing is installed: programs open the libraries in them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use crate::built::target_directory;
use crate::tool;

static FETCHING: Mutex<()> = Mutex::new(());

/// The folder with the contents of a package's wheel for Linux on x86-64 and Python 3.11.
pub fn unpacked(name: &str, version: &str) -> Result<PathBuf, String> {
    unpacked_for(name, version, "manylinux2014_x86_64")
}

/// The same of the wheel for another system.
pub fn unpacked_for(name: &str, version: &str, platform: &str) -> Result<PathBuf, String> {
    let _one_at_a_time = FETCHING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let kind = if platform.starts_with("musl") { "-musl" } else { "" };
    let directory = target_directory().join("pypi").join(format!("{name}-{version}{kind}"));
    let (wheels, contents) = (directory.join("wheels"), directory.join("contents"));
    if !contents.is_dir() {
        let mut download = Command::new("pip3");
        download.args(["download", "--quiet", "--no-deps", "--only-binary", ":all:"]);
        download.args(["--python-version", "3.11", "--platform", platform]);
        download.arg(format!("{name}=={version}")).arg("--dest").arg(&wheels);
        tool::output(&mut download)?;
        let wheel = wheels.read_dir().map_err(|error| error.to_string())?.flatten().next();
        let wheel = wheel.ok_or_else(|| format!("no wheel of {name}"))?;
        let fresh = directory.join(format!("contents.{}", std::process::id()));
        let mut unpack = Command::new("python3");
        unpack.args(["-m", "zipfile", "-e"]).arg(wheel.path()).arg(&fresh);
        tool::output(&mut unpack)?;
        std::fs::rename(fresh, &contents).map_err(|error| error.to_string())?;
    }
    contents.canonicalize().map_err(|error| error.to_string())
}

/// The folder with one folder of a package's sources.
pub fn source(name: &str, version: &str, folder: &str) -> Result<PathBuf, String> {
    let _one_at_a_time = FETCHING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let directory = target_directory().join("pypi").join(format!("{name}-{version}-source"));
    let (archives, contents) = (directory.join("archives"), directory.join("contents"));
    if !contents.is_dir() {
        let mut download = Command::new("pip3");
        download.args(["download", "--quiet", "--no-deps", "--no-binary", name]);
        download.arg(format!("{name}=={version}")).arg("--dest").arg(&archives);
        tool::output(&mut download)?;
        let archive = archives.read_dir().map_err(|error| error.to_string())?.flatten().next();
        let archive = archive.ok_or_else(|| format!("no source of {name}"))?;
        let fresh = directory.join(format!("contents.{}", std::process::id()));
        std::fs::create_dir_all(&fresh).map_err(|error| error.to_string())?;
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(archive.path()).arg("-C").arg(&fresh);
        unpack.args(["--strip-components=1", "--wildcards"]).arg(format!("*/{folder}/*"));
        tool::output(&mut unpack)?;
        std::fs::rename(fresh, &contents).map_err(|error| error.to_string())?;
    }
    contents.canonicalize().map_err(|error| error.to_string())
}

/// A library of a folder by the beginning of its name: its end tells its contents.
pub fn library(folder: &str, directory: PathBuf, beginning: &str) -> Result<PathBuf, String> {
    let entries = directory.join(folder).read_dir().map_err(|error| error.to_string())?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let is_it = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning))
    };
    paths.find(is_it).ok_or_else(|| format!("no {beginning} in {}", directory.display()))
}
