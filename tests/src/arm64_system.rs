//! A whole system for aarch64, run by an emulator of machines (qemu-system): a kernel of Debian sid, whose
//! pages are of 4K or 16K, and Debian sid's programs in memory. It has what the emulator of programs
//! lacks: pages of other sizes than this machine's, children that share their parent's memory, and a
//! kernel that keeps time with the processor's counter. Neither emulator keeps caches of instructions.
//!
//! Everything that a boot is to run is said before. A script runs it and sends back what it made, as text
//! through the serial line, for which every kernel has a driver inside.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::built::target_directory;
use crate::initramfs::Initramfs;
use crate::ran::Ran;
use crate::recording::Recording;
use crate::within::output_within;
use crate::{arm64, debian, tool};

/// The newest of Debian that is stable: it differs in nothing that concerns us.
const EMULATOR_SUITE: &str = "bookworm";
/// Long vectors (SVE) are slow to emulate, and so is a real algorithm for the signatures of pointers.
const PROCESSOR: &str = "max,sve=off,pauth-impdef=on";
/// Before and after what it sends back.
const BEGIN: &str = "=== results";
const END: &str = "=== end";
/// Many times what the longest boot takes here.
const LIMIT: Duration = Duration::from_secs(600);

/// Debian has no kernel with pages of 64K.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    Of4K,
    Of16K,
}

impl Pages {
    pub const ALL: [Self; 2] = [Self::Of4K, Self::Of16K];

    /// How the names of its kernels end.
    fn flavour(self) -> &'static str {
        match self {
            Self::Of4K => "-cloud-arm64",
            Self::Of16K => "-arm64-16k",
        }
    }
}

/// A system that is not yet started.
#[derive(Debug)]
pub struct System {
    /// The emulator with its loader.
    emulator: Command,
    kernel: PathBuf,
    /// Where files are, and what they are called inside.
    files: Vec<(PathBuf, String)>,
    script: String,
}

impl System {
    /// `None`, with a sentence, where it cannot be had.
    pub fn new(pages: Pages) -> Option<Self> {
        tool::fetched("an emulated aarch64", Self::fetched(pages))
    }

    fn fetched(pages: Pages) -> Result<Self, String> {
        let kernels = Pages::ALL.map(|pages| format!("^linux-binary-[0-9].*{}$", pages.flavour()));
        let [small, large] = &kernels;
        let packages = ["busybox-static", small, large];
        let parts = debian::unpacked_for("arm64", "debian-kernel-arm64", "sid", &[], &packages)?;
        let files = [
            (arm64::debian_root()?, ""),
            (parts.join("usr/bin/busybox"), "bin/busybox"),
            (arm64::agent()?, "agent.so"),
        ];
        let files = files.map(|(file, name)| (file, name.to_owned())).to_vec();
        let kernel = kernel(&parts, pages)?;
        Ok(Self { emulator: emulator()?, kernel, files, script: String::new() })
    }

    /// A file or a folder, under this name in the system's root.
    pub fn place(&mut self, file: impl Into<PathBuf>, name: &str) {
        self.files.push((file.into(), name.to_owned()));
    }

    /// Runs a line of shell under a name.
    pub fn run(&mut self, name: &str, line: &str) {
        let step = format!(
            "mkdir /results/{name}; cd /results/{name}\n\
             ( {line} ) >out 2>err </dev/null; echo $? >code\n"
        );
        self.script.push_str(&step);
    }

    /// The same with the agent.
    pub fn record(&mut self, name: &str, line: &str) {
        let agent = "LD_PRELOAD=/agent.so GGPROF_SPOOL=$PWD/%p.spool";
        self.run(name, &format!("export {agent}; {line}"));
    }

    /// Starts it and waits for its end.
    pub fn boot(mut self) -> Ended {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("arm64-system-{}-{number}", std::process::id());
        let directory = target_directory().join("recordings").join(name);
        fs::create_dir_all(directory.join("results")).expect("the target directory can be written");
        let ended = Ended { directory };
        let (archive, console) = (ended.directory.join("archive"), ended.directory.join("console"));
        self.write(&archive).expect("it can be written");
        self.emulator.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(&archive);
        self.emulator.arg("-serial").arg(format!("file:{}", console.display()));
        let output = output_within(LIMIT, &mut self.emulator);
        let output = output.unwrap_or_else(|| panic!("it does not end: {}", console.display()));
        let said = fs::read_to_string(&console).unwrap_or_default();
        assert!(output.status.success(), "{output:?}\n{said}");
        let results = said.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END));
        let results = results.unwrap_or_else(|| panic!("it sends nothing back: {said}")).0;
        ended.unpack(&results.replace('\r', ""));
        _ = fs::remove_file(archive);
        ended
    }

    fn write(&self, archive: &Path) -> std::io::Result<()> {
        let mut archive = Initramfs::create(archive)?;
        for folder in ["bin", "proc", "sys", "dev", "tmp", "results"] {
            archive.folder(folder)?;
        }
        archive.program("init", init(&self.script).as_bytes())?;
        for (file, name) in &self.files {
            archive.copy(name, file)?;
        }
        archive.finish()
    }
}

/// What a system did.
#[derive(Debug)]
pub struct Ended {
    directory: PathBuf,
}

impl Ended {
    fn unpack(&self, text: &str) {
        let packed = self.directory.join("packed");
        fs::write(&packed, text).expect("the target directory can be written");
        let script = "base64 --decode \"$1\" | tar --extract --gzip --directory \"$2\"";
        let mut unpack = Command::new("sh");
        unpack.args(["-c", script, "sh"]).arg(packed).arg(self.directory.join("results"));
        tool::output(&mut unpack).expect("what it sent back is whole");
    }

    /// Of what ran under this name.
    pub fn ran(&self, name: &str) -> Ran {
        let read = |file: &str| {
            let file = self.place_of(name).join(file);
            let bytes = fs::read(&file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Ran { code: read("code").trim().parse().ok(), out: read("out"), err: read("err") }
    }

    /// The recordings of what was recorded under this name.
    pub fn recordings(&self, name: &str) -> Vec<Recording> {
        let files = fs::read_dir(self.place_of(name)).expect("it ran").flatten();
        let files = files.map(|file| file.path());
        files
            .filter(|file| {
                [".spool", ".ggprof"].iter().any(|end| file.to_string_lossy().contains(end))
            })
            .map(|file| Recording::read(&file))
            .collect()
    }

    fn place_of(&self, name: &str) -> PathBuf {
        self.directory.join("results").join(name)
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        // What a failed test made is kept to be looked at.
        if !std::thread::panicking() {
            _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// With all libraries that it needs, so that this system need not have them.
fn emulator() -> Result<Command, String> {
    let root = debian::unpacked("debian-qemu-system", EMULATOR_SUITE, &["qemu-system-arm"], &[])?;
    let libraries = ["lib", "usr/lib"].map(|folder| root.join(folder).join("x86_64-linux-gnu"));
    let mut places = String::new();
    for place in &libraries {
        _ = write!(places, "{}:", place.display());
    }
    let mut command = Command::new(libraries[0].join("ld-linux-x86-64.so.2"));
    command.args(["--inhibit-cache", "--library-path", places.trim_end_matches(':')]);
    command
        .arg(root.join("usr/bin/qemu-system-aarch64"))
        .arg("-L")
        .arg(root.join("usr/share/qemu"));
    command.args(["-M", "virt", "-cpu", PROCESSOR, "-smp", "2", "-m", "2G"]);
    command.args(["-display", "none", "-monitor", "none", "-net", "none", "-no-reboot"]);
    command.args(["-append", "console=ttyAMA0 quiet panic=-1"]);
    Ok(command)
}

fn kernel(root: &Path, pages: Pages) -> Result<PathBuf, String> {
    let folder = root.join("usr/lib/modules");
    let versions = fs::read_dir(&folder).map_err(|error| error.to_string())?.flatten();
    let mut fitting = versions.map(|version| version.path()).filter(|version| {
        version.to_string_lossy().ends_with(pages.flavour()) && version.join("vmlinuz").is_file()
    });
    let version =
        fitting.next().ok_or_else(|| format!("no kernel {} is there", pages.flavour()))?;
    Ok(version.join("vmlinuz"))
}

/// The first process.
fn init(script: &str) -> String {
    format!(
        r#"#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
export PATH=/bin:/usr/bin HOME=/tmp
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmp /tmp
mount -t tmpfs results /results
ip link set lo up
{script}
echo '{BEGIN}'
tar -cz -C /results . | base64
echo '{END}'
poweroff -f
"#
    )
}
