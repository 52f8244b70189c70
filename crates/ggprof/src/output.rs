//! Writes files whole or not at all.

use crate::messages;
use anyhow::anyhow;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Size of the buffer in front of a file.
const BUFFER: usize = 256 * 1024;

/// Writes to `path` with `write`. A regular file appears under its name only when it is
/// complete; until then what stood there stays. `-` is standard output.
pub(crate) fn to_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    if path.as_os_str() == "-" {
        return to_stdout(write);
    }
    let result = match fs::metadata(path) {
        // A device or a pipe is written as it is; there is nothing to replace.
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
            File::options().write(true).open(path).and_then(|file| fill(file, write))
        }
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        // The file behind a link is replaced, not the link.
        Ok(_) => fs::canonicalize(path).and_then(|path| replace(&path, write)),
        Err(_) => replace(path, write),
    };
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => anyhow::Error::new(error),
        _ => anyhow!(messages::cannot_write(path, &error)),
    })
}

/// Writes to standard output with `write`.
pub(crate) fn to_stdout(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    fill(io::stdout().lock(), write).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => anyhow::Error::new(error),
        _ => anyhow!(messages::cannot_write(Path::new("standard output"), &error)),
    })
}

fn fill(
    target: impl Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER, target);
    let result = write(&mut out).and_then(|()| out.flush());
    // After a failure the rest of the buffer must not be tried again when it is dropped.
    let _ = out.into_parts();
    result
}

/// Writes beside `path` and renames.
fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let part = part_path(path)?;
    let file = File::options().write(true).create_new(true).open(&part)?;
    let result = fill(file, write).and_then(|()| fs::rename(&part, path));
    if result.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&part);
    }
    result
}

/// A name in the same directory, and so on the same disk, that nobody else uses.
fn part_path(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut part = std::ffi::OsString::from(".");
    part.push(name);
    part.push(format!(".{}.part", std::process::id()));
    Ok(path.with_file_name(part))
}
