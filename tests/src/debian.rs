//! Packages of Debian's releases, fetched by apt into the target directory and unpacked there. This
//! needs no root and changes nothing on the machine, because apt gets separate directories.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::built::target_directory;
use crate::tool;

/// The directory with the contents of these packages for x86-64 and of all that they depend on, and of
/// those that are wanted alone. It is kept under `name` in the target directory.
pub fn unpacked(
    name: &str,
    suite: &str,
    packages: &[&str],
    alone: &[&str],
) -> Result<PathBuf, String> {
    unpacked_for("amd64", name, suite, packages, alone)
}

/// The same for another processor, in the words of Debian.
pub(crate) fn unpacked_for(
    processor: &str,
    name: &str,
    suite: &str,
    packages: &[&str],
    alone: &[&str],
) -> Result<PathBuf, String> {
    static FETCHING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = FETCHING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let directory = target_directory().join(name);
    let (root, list) = (directory.join("root"), directory.join("packages"));
    let wanted = [packages, alone].concat().join(" ");
    if fs::read_to_string(&list).is_ok_and(|there| there == wanted) && root.is_dir() {
        return root.canonicalize().map_err(|error| error.to_string());
    }
    let part = directory.join("part");
    _ = fs::remove_dir_all(&part);
    let text = |error: std::io::Error| error.to_string();
    fs::create_dir_all(part.join("root")).map_err(text)?;
    let part_of = Apt::new(&part.canonicalize().map_err(text)?, &mirror()?, suite, processor);
    part_of.map_err(text)?.unpack(packages, alone)?;
    _ = fs::remove_dir_all(&root);
    fs::rename(part.join("root"), &root).map_err(text)?;
    fs::write(&list, wanted).map_err(text)?;
    _ = fs::remove_dir_all(&part);
    root.canonicalize().map_err(|error| error.to_string())
}

/// Where this machine gets its Debian from.
pub fn mirror() -> Result<String, String> {
    let mut ask = Command::new("apt-get");
    ask.args(["--option", "Debug::NoLocking=1", "--print-uris", "update"]);
    let addresses = tool::output(&mut ask)?;
    let archives =
        addresses.lines().filter_map(|line| line.trim_start_matches('\'').split_once("/dists/"));
    let debian = archives.map(|(archive, _)| archive).find(|archive| archive.ends_with("/debian"));
    debian.map(str::to_owned).ok_or_else(|| "apt is not set up for Debian here".to_owned())
}

/// apt with nothing installed and directories of its own.
struct Apt {
    directory: PathBuf,
    settings: Vec<String>,
}

impl Apt {
    fn new(directory: &Path, mirror: &str, suite: &str, processor: &str) -> std::io::Result<Apt> {
        for name in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(directory.join(name))?;
        }
        let place = |name: &str| directory.join(name).to_string_lossy().into_owned();
        let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let source = format!("deb [signed-by={keys}] {mirror} {suite} main\n");
        fs::write(place("sources.list"), source)?;
        fs::write(place("status"), "")?;
        let settings = [
            ("APT::Architecture", processor.to_owned()),
            ("APT::Architectures", processor.to_owned()),
            ("Dir::Etc::SourceList", place("sources.list")),
            ("Dir::Etc::SourceParts", "/dev/null".to_owned()),
            ("Dir::State", directory.to_string_lossy().into_owned()),
            ("Dir::State::status", place("status")),
            ("Dir::Cache", directory.to_string_lossy().into_owned()),
            ("Debug::NoLocking", "1".to_owned()),
            // Lists that only software centres read.
            ("Acquire::Languages", "none".to_owned()),
            ("Acquire::IndexTargets::deb::DEP-11::DefaultEnabled", "false".to_owned()),
        ];
        let settings = settings.map(|(name, value)| format!("{name}={value}")).to_vec();
        Ok(Apt { directory: directory.to_owned(), settings })
    }

    /// Into the folder `root` of its directory.
    fn unpack(&self, packages: &[&str], alone: &[&str]) -> Result<(), String> {
        tool::output(&mut self.command("update"))?;
        if !packages.is_empty() {
            tool::output(self.command("install").args(packages))?;
        }
        let archives = self.directory.join("archives");
        if !alone.is_empty() {
            tool::output(self.command("download").args(alone).current_dir(&archives))?;
        }
        for entry in fs::read_dir(&archives).map_err(|error| error.to_string())?.flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "deb") {
                let to = self.directory.join("root");
                tool::output(Command::new("dpkg-deb").arg("-x").arg(entry.path()).arg(to))?;
            }
        }
        Ok(())
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new("apt-get");
        command.args(["--quiet", "--yes", "--download-only", "--no-install-recommends"]);
        for setting in &self.settings {
            command.args(["--option", setting]);
        }
        command.arg(verb);
        command
    }
}
