//! llama-cpp-python. Its index has sources only, which take long to compile: its Python code runs here on
//! the libllama of other bindings, whose structs are those that it was written for.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::{debian_sid, pypi, python_bindings, tool};

const SOURCE: (&str, &str) = ("llama-cpp-python", "0.3.36");
const LIBRARIES: (&str, &str) = ("llama-cpp-py-sync", "0.11413");
const DEPENDENCIES: [(&str, &str); 5] = [
    ("numpy", "1.26.4"),
    ("diskcache", "5.6.3"),
    ("jinja2", "3.1.6"),
    ("markupsafe", "3.0.4"),
    ("typing-extensions", "4.16.0"),
];

/// Python with llama-cpp-python, on sid's C library. `None`, with a sentence, where it cannot be had.
pub fn python() -> Option<Command> {
    tool::fetched("llama-cpp-python", prepared())
}

fn prepared() -> Result<Command, String> {
    let package = pypi::source(SOURCE.0, SOURCE.1, "llama_cpp")?;
    let libraries = pypi::unpacked(LIBRARIES.0, LIBRARIES.1)?.join("llama_cpp_py_sync");
    // Where it looks for them.
    let folder = package.join("llama_cpp/lib");
    link_libraries(&libraries, &folder).map_err(|error| error.to_string())?;
    let mut places = vec![package];
    for (name, version) in DEPENDENCIES {
        places.push(pypi::unpacked(name, version)?);
    }
    let mut command = debian_sid::with_newer_libc(&python_bindings::interpreter()?, &libraries)?;
    let places = std::env::join_paths(places).map_err(|error| error.to_string())?;
    command.env("PYTHONPATH", places);
    Ok(command)
}

fn link_libraries(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for (library, name) in [("libllama.so", "libllama.so"), ("libggml.so.0", "libggml.so")] {
        match symlink(from.join(library), to.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
