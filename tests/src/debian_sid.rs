//! Programs of Debian sid, which packages the newest llama.cpp and whisper.cpp: fetched by apt into
//! the target directory, and run there by sid's own dynamic loader. This needs no root and changes
//! nothing on the machine, because apt gets separate directories.
//!
//! ggml looks for its backends in a directory of the system, which is not sid's here, and then
//! beside the running executable, which is the loader. So the loader is copied, under the program's
//! name, into a directory with links to the backends that are wanted.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::built::target_directory;
use crate::tool;

/// These and what they depend on.
const PACKAGES: [&str; 6] = [
    "llama.cpp-tools",
    "llama.cpp-tools-extra",
    "libggml0-backend-blas",
    "libggml0-backend-rpc",
    "libopenblas0-pthread",
    "libwhisper1",
];
/// Without what they depend on, a video player and a web server's pages: `whisper-bench` and
/// `promtool` do without.
const ALONE: [&str; 2] = ["whisper.cpp-tools", "prometheus"];

const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
const LOADER: &str = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
const BACKENDS: &str = "usr/lib/x86_64-linux-gnu/ggml/backends0";
const PROGRAMS: [&str; 2] = ["usr/bin", "usr/libexec/x86_64-linux-gnu/llama/bin"];

static FETCHING: Mutex<()> = Mutex::new(());

/// A command that runs a program (`llama-server`, `ggml-rpc-server`, `promtool`, …) with
/// these backends (`cpu`, `blas`, `rpc`). `None`, with a sentence, where sid cannot be had.
pub fn command(program: &str, backends: &[&str]) -> Option<Command> {
    tool::fetched("Debian sid's ggml", prepared(program, backends))
}

pub(crate) fn prepared(program: &str, backends: &[&str]) -> Result<Command, String> {
    let _one_at_a_time = FETCHING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let root = root()?;
    let executable = PROGRAMS.iter().map(|place| root.join(place).join(program));
    let executable = executable.into_iter().find(|path| path.is_file());
    let executable = executable.ok_or_else(|| format!("sid's packages have no {program}"))?;
    let directory = target_directory().join("debian-sid").join(backends.join("+"));
    let loader = beside_backends(&root, &directory, program, backends)
        .map_err(|error| format!("{} cannot be prepared: {error}", directory.display()))?;
    let libraries = ["", "llama", "openblas-pthread"].map(|part| root.join(LIBRARIES).join(part));
    let libraries = libraries.map(|path| path.to_string_lossy().into_owned());
    let mut command = Command::new(loader);
    command.arg("--inhibit-cache").arg("--library-path").arg(libraries.join(":")).arg(executable);
    Ok(command)
}

/// A command that runs a program of this system on sid's C library, with libraries of a folder.
pub fn with_newer_libc(program: &Path, libraries: &Path) -> Result<Command, String> {
    let _one_at_a_time = FETCHING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let root = root()?;
    let own = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"].map(PathBuf::from);
    let places: Vec<String> = [libraries.to_path_buf(), root.join(LIBRARIES)]
        .iter()
        .chain(&own)
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    let mut command = Command::new(root.join(LOADER));
    command.args(["--inhibit-cache", "--library-path"]).arg(places.join(":")).arg(program);
    Ok(command)
}

/// The loader's copy under the program's name, in a directory with the backends.
fn beside_backends(
    root: &Path,
    directory: &Path,
    program: &str,
    backends: &[&str],
) -> std::io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    for library in fs::read_dir(root.join(BACKENDS))? {
        let library = library?;
        let name = library.file_name().to_string_lossy().into_owned();
        let kind = name.trim_start_matches("libggml-").split(['-', '.']).next().unwrap_or_default();
        let link = directory.join(&name);
        if backends.contains(&kind) && !link.exists() {
            symlink(Path::new("../root").join(BACKENDS).join(&name), link)?;
        }
    }
    let directory = directory.canonicalize()?;
    let loader = directory.join(program);
    if !loader.is_file() {
        fs::copy(root.join(LOADER), &loader)?;
    }
    Ok(loader)
}

/// The directory with everything unpacked.
fn root() -> Result<PathBuf, String> {
    let directory = target_directory().join("debian-sid");
    let (root, list) = (directory.join("root"), directory.join("packages"));
    let wanted = [&PACKAGES[..], &ALONE].concat().join(" ");
    if fs::read_to_string(&list).is_ok_and(|there| there == wanted) && root.is_dir() {
        return root.canonicalize().map_err(|error| error.to_string());
    }
    let part = directory.join("part");
    _ = fs::remove_dir_all(&part);
    let text = |error: std::io::Error| error.to_string();
    fs::create_dir_all(part.join("root")).map_err(text)?;
    unpack(&part.canonicalize().map_err(text)?)?;
    _ = fs::remove_dir_all(&root);
    fs::rename(part.join("root"), &root).map_err(text)?;
    fs::write(&list, wanted).map_err(text)?;
    _ = fs::remove_dir_all(&part);
    root.canonicalize().map_err(|error| error.to_string())
}

fn unpack(directory: &Path) -> Result<(), String> {
    let apt = Apt::new(directory, &mirror()?).map_err(|error| error.to_string())?;
    tool::output(&mut apt.command("update"))?;
    tool::output(apt.command("install").args(PACKAGES))?;
    let archives = directory.join("archives");
    tool::output(apt.command("download").args(ALONE).current_dir(&archives))?;
    for entry in fs::read_dir(&archives).map_err(|error| error.to_string())?.flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "deb") {
            let to = directory.join("root");
            tool::output(Command::new("dpkg-deb").arg("-x").arg(entry.path()).arg(to))?;
        }
    }
    Ok(())
}

/// Where this machine gets its Debian from.
fn mirror() -> Result<String, String> {
    let mut ask = Command::new("apt-get");
    ask.args(["--option", "Debug::NoLocking=1", "--print-uris", "update"]);
    let addresses = tool::output(&mut ask)?;
    let archives =
        addresses.lines().filter_map(|line| line.trim_start_matches('\'').split_once("/dists/"));
    let debian = archives.map(|(archive, _)| archive).find(|archive| archive.ends_with("/debian"));
    debian.map(str::to_owned).ok_or_else(|| "apt is not set up for Debian here".to_owned())
}

/// apt with nothing installed and directories of its own.
struct Apt(Vec<String>);

impl Apt {
    fn new(directory: &Path, mirror: &str) -> std::io::Result<Apt> {
        for name in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(directory.join(name))?;
        }
        let place = |name: &str| directory.join(name).to_string_lossy().into_owned();
        let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
        fs::write(place("sources.list"), format!("deb [signed-by={keys}] {mirror} sid main\n"))?;
        fs::write(place("status"), "")?;
        let settings = [
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
        Ok(Apt(settings.map(|(name, value)| format!("{name}={value}")).to_vec()))
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new("apt-get");
        command.args(["--quiet", "--yes", "--download-only", "--no-install-recommends"]);
        for setting in &self.0 {
            command.args(["--option", setting]);
        }
        command.arg(verb);
        command
    }
}
