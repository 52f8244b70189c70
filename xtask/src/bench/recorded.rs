//! A program that computes for as long as it is let, recorded with a limited size.

use crate::shell;
use anyhow::Context;
use ggprof_e2e::built;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const OPS: [&str; 6] = ["--threads", "1", "--layers", "12", "--graphs", "1000000000"];

/// The program, and a directory for what belongs to it.
pub(super) struct Recorded<'a> {
    ggprof: &'a Path,
    directory: PathBuf,
    launcher: Child,
}

impl<'a> Recorded<'a> {
    /// The narrower its layers are, the more ops it computes in a second.
    pub(super) fn start(
        ggprof: &'a Path,
        libraries: &Path,
        limit: &str,
        width: &str,
    ) -> anyhow::Result<Self> {
        let directory = shell::target().join("bench/ring");
        _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory)?;
        let mut run = command(ggprof, &directory);
        run.args(["run", "--max-size", limit, "-o", "/dev/null", "--"]);
        run.arg(built::workload()).arg(libraries).args(OPS).args(["--embd", width]);
        let launcher = run.spawn().context("ggprof cannot be started")?;
        Ok(Self { ggprof, directory, launcher })
    }

    /// `ggprof` with these words, which finds the program.
    pub(super) fn ggprof(&self, words: &[&str]) -> Command {
        let mut command = command(self.ggprof, &self.directory);
        command.args(words);
        command
    }

    pub(super) fn launcher(&self) -> u32 {
        self.launcher.id()
    }
}

impl Drop for Recorded<'_> {
    fn drop(&mut self) {
        _ = Command::new("kill").args(["-TERM", &self.launcher.id().to_string()]).status();
        _ = self.launcher.wait();
        _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Of a process so far, without what it started.
pub(super) fn processor_time(pid: u32) -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let behind_name = stat.rsplit_once(')').context("a process")?.1;
    let fields = behind_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.filter_map(|it| it.parse::<u64>().ok()).sum();
    // A tick is a hundredth of a second in every Linux that there is.
    Ok(Duration::from_millis(10 * ticks))
}

fn command(ggprof: &Path, directory: &Path) -> Command {
    let mut command = Command::new(ggprof);
    command.env("XDG_RUNTIME_DIR", directory).env("TMPDIR", directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
