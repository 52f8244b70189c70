//! `ggprof run` and `ggprof ctl` in a session of their own: a runtime directory and a directory
//! for files that nobody else uses.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{built, published_ggml};

/// A program that computes for as long as it is let, without libllama.
pub fn endless() -> Option<Command> {
    let libraries = published_ggml::libraries(published_ggml::NEWEST)?;
    let mut workload = Command::new(built::workload());
    workload.arg(libraries).args(["--threads", "1", "--layers", "2", "--graphs", "100000000"]);
    Some(workload)
}

#[derive(Debug)]
pub struct Session {
    directory: PathBuf,
}

impl Session {
    /// In a directory of this name, which must be fresh.
    pub fn new(directory: &Path) -> Session {
        for name in ["runtime", "files", "temporary"] {
            std::fs::create_dir_all(directory.join(name)).expect("the directory can be written");
        }
        Session { directory: directory.canonicalize().expect("it was just made") }
    }

    /// In a new directory, which goes with the first of the two.
    pub fn in_new_place() -> (TempDir, Session) {
        let directory = TempDir::new().expect("a directory can be made");
        let session = Session::new(directory.path());
        (directory, session)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join("files").join(name)
    }

    /// `ggprof` with these words.
    pub fn ggprof(&self, words: &[&str]) -> Command {
        let mut command = Command::new(built::ggprof());
        command.args(words).current_dir(self.directory.join("files")).env_remove("LD_PRELOAD");
        command.env("XDG_RUNTIME_DIR", self.directory.join("runtime"));
        command.env("TMPDIR", self.directory.join("temporary"));
        command.stdin(Stdio::null());
        command
    }

    /// `ggprof run` with these options in front of a program.
    pub fn recorded(&self, options: &[&str], program: &Command) -> Command {
        let mut command = self.ggprof(&[&["run"], options, &["--"]].concat());
        command.arg(program.get_program()).args(program.get_args());
        command
    }

    pub fn ctl(&self, words: &[&str]) -> Output {
        self.ggprof(&[&["ctl"], words].concat()).output().expect("ggprof starts")
    }

    /// `ctl` that does what it should; what it printed.
    pub fn ctl_well(&self, words: &[&str]) -> String {
        let output = self.ctl(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The sockets there are.
    pub fn sockets(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.directory.join("runtime/ggprof"));
        entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }

    /// The recordings being made.
    pub fn spools(&self) -> Vec<PathBuf> {
        let places = std::fs::read_dir(self.directory.join("temporary")).into_iter().flatten();
        let files = places.flatten().filter_map(|place| std::fs::read_dir(place.path()).ok());
        let mut spools: Vec<PathBuf> = files.flatten().flatten().map(|file| file.path()).collect();
        // The layer that the agent announces to Vulkan has a directory beside them.
        spools.retain(|path| path.is_file());
        spools.sort();
        spools
    }

    /// Waits until what a launcher started has computed some graphs; its number. Launchers without
    /// a runtime directory are listed in every session, so several tests at once have to tell
    /// theirs apart.
    pub fn wait_for_one(&self, launcher: &Running) -> u32 {
        self.wait_for_busy(&["status", &launcher.id().to_string()], 1)[0]
    }

    /// Waits until as many processes are listed, each with some graph runs; their numbers.
    pub fn wait_for(&self, processes: usize) -> Vec<u32> {
        self.wait_for_busy(&["status"], processes)
    }

    fn wait_for_busy(&self, question: &[&str], processes: usize) -> Vec<u32> {
        let started = Instant::now();
        loop {
            let output = self.ctl(question);
            let text = String::from_utf8_lossy(&output.stdout);
            let busy = text.lines().filter(|line| !line.contains("  0 graph runs"));
            let pids: Vec<u32> =
                busy.filter_map(|line| line.split(' ').next()?.parse().ok()).collect();
            if pids.len() >= processes {
                return pids;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "nothing is recorded: {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // What a failed test made is kept to be looked at.
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

/// A process that is asked to end when this is dropped.
#[derive(Debug)]
pub struct Running(Option<Child>);

impl Running {
    pub fn start(command: &mut Command) -> Running {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Running(Some(command.spawn().expect("it starts")))
    }

    pub fn id(&self) -> u32 {
        self.0.as_ref().map_or(0, Child::id)
    }

    /// The first line that it says, byte by byte, so that nothing behind it is taken.
    #[expect(clippy::unbuffered_bytes, reason = "a buffer would take more")]
    pub fn first_line(&mut self) -> String {
        let said = self.0.as_mut().and_then(|child| child.stderr.as_mut()).expect("a pipe");
        let line = said.bytes().map_while(Result::ok).take_while(|&byte| byte != b'\n');
        String::from_utf8_lossy(&line.collect::<Vec<_>>()).into_owned()
    }

    /// Ends it as a terminal's user would; the exit code and what it said.
    pub fn end(mut self) -> (Option<i32>, String) {
        terminate(self.id());
        let ended = self.0.take().and_then(|child| child.wait_with_output().ok());
        let output = ended.expect("it can be waited for");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            terminate(child.id());
            let _ = child.wait();
        }
    }
}

fn terminate(pid: u32) {
    let _ = Command::new("kill").args(["-TERM", &pid.to_string()]).status();
}
