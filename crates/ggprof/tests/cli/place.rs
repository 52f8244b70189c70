//! Runs the real command in a directory of its own.

use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub(crate) const GGPROF: &str = env!("CARGO_BIN_EXE_ggprof");

/// A record as ggml writes it.
pub(crate) const RECORD: &str = r#"{"type": 0, "name": "MUL_MAT", "backend_id": 0, "split_id": 1, "start_ns": 100, "duration_ns": 50, "bytes": 64, "extra": null, "tensor_name": "Qcur-0", "ne": [16, 1, 1, 1], "out_type": 0, "n_src": 2, "ne_src": [[32, 16, 1, 1], [32, 1, 1, 1]], "nb_src": [[18, 18, 288, 288], [4, 128, 128, 128]], "type_src": [2, 0], "op_params": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "sub_op": -1}"#;

/// A profile with these records.
pub(crate) fn profile(records: &[&str]) -> String {
    let backend = r#"{"id": 0, "name": "CPU", "device": "CPU", "device_type": 0}"#;
    let records = records.join(",\n");
    format!(
        "{{\"version\": 3, \"profiler\": \"ggml\", \"backends\": [{backend}],\n\"records\": [\n{records}\n]}}\n"
    )
}

/// A recording of ggml's own profiler, in which most of a layer is missing: good enough to test with.
pub(crate) fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/ggml-profiler-h200.json.gz")
}

pub(crate) struct Place {
    pub(crate) dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    /// `ggprof` with these arguments, run here.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(GGPROF);
        // What is kept of this machine must not change what is printed.
        command.env("XDG_CACHE_HOME", self.dir.path());
        command.current_dir(self.dir.path()).args(arguments);
        command.env_remove("NO_COLOR").stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A command that fails early does not read it all.
        let _ = stdin.write_all(input);
        drop(stdin);
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Names of the files here, hidden ones included.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text on standard output"),
            err: String::from_utf8(output.stderr).expect("text on standard error"),
        }
    }

    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!((self.code, self.err.contains("warning")), (Some(0), false), "{self:?}");
        self
    }

    /// Failed with one line on standard error and nothing on standard output.
    #[track_caller]
    pub(crate) fn failed_with_a_sentence(&self) {
        assert_eq!((self.code, self.out.as_str()), (Some(1), ""), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        assert!(self.err.starts_with("ggprof: ") && self.err.ends_with(".\n"), "{self:?}");
    }
}

/// The example, unpacked and parsed by somebody else.
pub(crate) fn original() -> Value {
    let mut json = String::new();
    let file = std::fs::File::open(example()).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut json).unwrap();
    serde_json::from_str(&json).unwrap()
}
