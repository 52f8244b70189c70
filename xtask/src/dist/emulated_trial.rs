//! Tries the packages for aarch64: the command of each, taken out as its installer would, runs in an
//! emulated system with pages of 4K and of 16K, and records and reads there.

use anyhow::{Context, bail};
use ggprof_e2e::arm64_system::{Pages, System};
use ggprof_e2e::model::Model;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Packages, VERSION};
use crate::shell;

const EXAMPLE: &str = "examples/llama-moe-cpu-h200.ggprof.gz";
/// What the command of the tarball is asked, and what its answer has in it.
const QUESTIONS: [(&str, &str); 4] = [
    ("doctor", ""),
    ("run --strict -o /tmp/p.ggprof -- llama-bench --model /tiny.gguf -p 16 -n 4 -r 1 -t 1", "tg4"),
    ("report /tmp/p.ggprof --by op", "MUL_MAT"),
    ("report /example.ggprof.gz", "MUL_MAT_ID"),
];

pub(super) fn try_packages(packages: &Packages) -> anyhow::Result<()> {
    let commands = commands(packages)?;
    for pages in Pages::ALL {
        println!("emulated, pages {pages:?}:");
        let mut system = System::new(pages).context("the packages for aarch64 were not tried")?;
        system.place(Model::TINY.file("tiny")?, "tiny.gguf");
        system.place(shell::root().join(EXAMPLE), "example.ggprof.gz");
        let mut questions = Vec::new();
        for (kind, command) in &commands {
            system.place(command, kind);
            questions.push((format!("/{kind} --version"), format!("ggprof {VERSION}\n")));
        }
        let asked =
            QUESTIONS.map(|(words, answer)| (format!("/tarball {words}"), answer.to_owned()));
        questions.extend(asked);
        for (at, (line, _)) in questions.iter().enumerate() {
            system.run(&at.to_string(), line);
        }
        let ended = system.boot();
        for (at, (line, answer)) in questions.iter().enumerate() {
            let ran = ended.ran(&at.to_string());
            if ran.code != Some(0) || !ran.out.contains(answer) {
                bail!("`{line}` failed in the emulated system: {ran:?}");
            }
            println!("  {line}");
        }
    }
    Ok(())
}

/// The command of each package.
fn commands(packages: &Packages) -> anyhow::Result<[(&'static str, PathBuf); 3]> {
    let directory = shell::target().join("dist/emulated");
    let _ = fs::remove_dir_all(&directory);
    let folder = |kind: &str| -> anyhow::Result<PathBuf> {
        let folder = directory.join(kind);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    let (tarball, wheel, debian) = (folder("tarball")?, folder("wheel")?, folder("debian")?);
    let mut tar = shell::command("tar", &["--extract", "--strip-components=1", "--file"]);
    shell::run(tar.arg(&packages.tarball).arg("--directory").arg(&tarball))?;
    let mut zip = shell::command("python3", &["-m", "zipfile", "--extract"]);
    shell::run(zip.arg(&packages.wheel).arg(&wheel))?;
    // Python leaves this to pip.
    let script = wheel.join(format!("ggprof-{VERSION}.data/scripts/ggprof"));
    shell::run(shell::command("chmod", &["+x"]).arg(&script))?;
    let mut unpack = shell::command("dpkg-deb", &["--extract"]);
    shell::run(unpack.arg(&packages.debian).arg(&debian))?;
    let there = |path: &Path| path.canonicalize().with_context(|| format!("no {}", path.display()));
    Ok([
        ("tarball", there(&tarball.join("bin/ggprof"))?),
        ("wheel", there(&script)?),
        ("debian", there(&debian.join("usr/bin/ggprof"))?),
    ])
}
