//! Writes files completely or not at all.

use crate::interruption::Removal;
use crate::messages;
use anyhow::anyhow;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

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
        // Replaces the file that a link points to, not the link.
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

/// Writes into a file in the same directory, and so on the same disk, and renames it.
fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ggprof-").suffix(".part");
    // As any other file: the user's mask takes away what it shall.
    with_mode(&mut builder, 0o666);
    let part =
        builder.tempfile_in(directory.unwrap_or(Path::new("."))).map_err(without_its_name)?;
    let _removal = Removal::of(part.path());
    fill(part.as_file(), write)?;
    part.persist(path).map(|_| ()).map_err(|failed| failed.error)
}

/// Sets who may open what is made, on systems that have such a mode.
pub(crate) fn with_mode(builder: &mut tempfile::Builder<'_, '_>, mode: u32) {
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = (builder, mode);
}

/// The name of the part says nothing to the user, who knows the file by another.
fn without_its_name(error: io::Error) -> io::Error {
    match error.kind() {
        known @ (io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
            known.into()
        }
        _ => error,
    }
}
