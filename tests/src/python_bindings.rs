//! Python bindings of libllama, as published: a newer build than Debian's, with ggml's RPC.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{debian_sid, pypi, tool};

const PACKAGES: [(&str, &str); 4] = [
    ("llama-cpp-py-sync", "0.11739"),
    ("numpy", "1.26.4"),
    ("cffi", "1.17.1"),
    ("pycparser", "2.22"),
];

/// Python with the bindings, on sid's C library. `None`, with a sentence, where it cannot be had.
pub fn python() -> Option<Command> {
    tool::fetched("Python bindings", prepared())
}

fn prepared() -> Result<Command, String> {
    let places: Result<Vec<PathBuf>, String> =
        PACKAGES.iter().map(|(name, version)| pypi::unpacked(name, version)).collect();
    let places = places?;
    let libraries = places[0].join("llama_cpp_py_sync");
    let mut command = debian_sid::with_newer_libc(&interpreter()?, &libraries)?;
    let places = std::env::join_paths(places).map_err(|error| error.to_string())?;
    command.env("PYTHONPATH", places);
    Ok(command)
}

/// The Python that the packages are for.
pub(crate) fn interpreter() -> Result<PathBuf, String> {
    let script = "import sys; print(*sys.version_info[:2], sys.executable)";
    let answer = tool::output(Command::new("python3").args(["-c", script]))?;
    let python = answer.trim().strip_prefix("3 11 ").ok_or("the packages are for 3.11")?;
    Path::new(python).canonicalize().map_err(|error| error.to_string())
}
