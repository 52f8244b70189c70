//! `cargo xtask dist`: what is handed out, in `target/dist`. The command carries the agents for both
//! processors and both C libraries; it and everything else need glibc 2.17 only, so they run on systems from 2013 on.
//! They hold no times, owners or paths of the machine that made them.
//!
//! `--try` installs each package into clean systems and records published programs there; those for the
//! other processor in an emulated system.

mod archive;
mod built;
pub(crate) mod contents;
mod debian_package;
mod documents;
mod emulated_trial;
mod linker;
mod needs;
mod trial;
mod wheel;

use anyhow::ensure;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

use crate::shell;
use contents::Contents;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Bytes of what is handed out. What makes one of them larger has to be worth it.
const LARGEST_COMMAND: usize = 8_000_000;
const LARGEST_WHEEL: usize = 5_000_000;

/// What the command is handed out for. Another processor gets a row here, and rows of its agents in
/// `built.rs`.
struct Platform {
    /// As Rust, Debian and Python call it.
    target: &'static str,
    debian: &'static str,
    libraries: &'static str,
    wheel: &'static str,
}

const PLATFORMS: &[Platform] = &[
    Platform {
        target: "x86_64-unknown-linux-gnu",
        debian: "amd64",
        libraries: "x86_64-linux-gnu",
        wheel: "manylinux_2_17_x86_64.manylinux2014_x86_64",
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        debian: "arm64",
        libraries: "aarch64-linux-gnu",
        wheel: "manylinux_2_17_aarch64.manylinux2014_aarch64",
    },
];

/// The packages of a platform.
struct Packages {
    tarball: PathBuf,
    wheel: PathBuf,
    debian: PathBuf,
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let tries = match arguments {
        [] => false,
        [flag] if flag == "--try" => true,
        _ => return Err(crate::misused("dist")),
    };
    let directory = shell::target().join("dist");
    fs::create_dir_all(&directory)?;
    let agents = built::agents()?;
    for platform in PLATFORMS {
        let built = built::command_and_library(platform, &agents)?;
        let packages =
            pack(platform, &Contents::gather(&built.command, &built.library)?, &directory)?;
        if tries {
            // Clean systems are of this machine's processor.
            match platform.target.starts_with(std::env::consts::ARCH) {
                true => trial::try_packages(&packages, &built)?,
                false => emulated_trial::try_packages(&packages)?,
            }
        }
    }
    Ok(())
}

fn pack(platform: &Platform, contents: &Contents, directory: &Path) -> anyhow::Result<Packages> {
    let processor = platform.target.split('-').next().unwrap_or_default();
    let name = format!("ggprof-{VERSION}-{processor}-linux");
    let write = |name: String, bytes: Vec<u8>| -> anyhow::Result<PathBuf> {
        let path = directory.join(&name);
        fs::write(&path, &bytes)?;
        let hash: String =
            Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(directory.join(format!("{name}.sha256")), format!("{hash}  {name}\n"))?;
        println!("{:>9} bytes  {}", bytes.len(), path.display());
        Ok(path)
    };
    at_most("the command", contents.command.len(), LARGEST_COMMAND)?;
    let tarball = contents.tarball(&name)?;
    let (wheel, wheel_name) = wheel::make(contents, platform)?;
    at_most("the wheel", wheel.len(), LARGEST_WHEEL)?;
    let debian = debian_package::make(contents, platform)?;
    Ok(Packages {
        tarball: write(format!("{name}.tar.gz"), tarball)?,
        wheel: write(wheel_name, wheel)?,
        debian: write(format!("ggprof_{VERSION}_{}.deb", platform.debian), debian)?,
    })
}

fn at_most(what: &str, bytes: usize, most: usize) -> anyhow::Result<()> {
    ensure!(bytes <= most, "{what} has {bytes} bytes, and is to have at most {most}");
    Ok(())
}
