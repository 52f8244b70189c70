//! Writes files completely or not at all.

use crate::interruption::{Removal, uninterrupted};
use crate::messages;
use anyhow::{anyhow, bail};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Size of the buffer in front of a file.
const BUFFER: usize = 256 * 1024;

/// The system follows so many links, one behind the other.
const MOST_LINKS: usize = 40;

/// Writes to `path` with `write`. A regular file appears under its name only when it is
/// complete; until then what stood there stays. `-` is standard output.
pub(crate) fn to_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    to_settled_file(path, write, || Settled { path: path.to_owned(), _held: None }).map(|_| ())
}

/// The name that a file gets in the end.
pub(crate) struct Settled {
    pub(crate) path: PathBuf,
    /// Kept until the file has this name.
    pub(crate) _held: Option<File>,
}

/// The same with a name that is settled when the file is complete; returns that name. A device or a
/// pipe has only one.
pub(crate) fn to_settled_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    settle: impl FnOnce() -> Settled,
) -> anyhow::Result<PathBuf> {
    if path.as_os_str() == "-" {
        return to_stdout(write).map(|()| path.to_owned());
    }
    let result = match fs::metadata(path) {
        // A device or a pipe is written as it is; there is nothing to replace.
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => File::options()
            .write(true)
            .open(path)
            .and_then(|file| fill(file, write))
            .map(|()| path.to_owned()),
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => replace(path, write, settle),
    };
    result.map_err(|error| cannot_write(path, error))
}

fn cannot_write(path: &Path, error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => anyhow::Error::new(error),
        _ => anyhow!(messages::cannot_write(path, &error)),
    }
}

/// Whether a file can be written there, found out before the work that it is about.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    if let Some(what) = no_name_of_a_file(path) {
        bail!(what);
    }
    let possible = match fs::metadata(path) {
        _ if path.as_os_str() == "-" => Ok(()),
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if !metadata.is_file() => Ok(()),
        _ => Removal::of(|| part_of(&target(path))).map(|_| ()),
    };
    possible.map_err(|error| cannot_write(path, error))
}

/// Why a name can be that of no file, whatever there is.
fn no_name_of_a_file(path: &Path) -> Option<String> {
    let name = path.as_os_str().as_encoded_bytes();
    let is_of_directory = [&b"/"[..], b"/.", b"/.."].iter().any(|end| name.ends_with(end));
    match name {
        [] => Some("the name of a file to write is empty. Give it a name.".to_owned()),
        _ if is_of_directory && !path.is_dir() => Some(format!(
            "{} cannot be written: it is the name of a directory. Name a file.",
            path.display()
        )),
        _ => None,
    }
}

/// Refuses to write several things to one place: the last would be all that is left, and on standard
/// output they would be mixed.
pub(crate) fn apart<'p>(paths: impl IntoIterator<Item = &'p Path>) -> anyhow::Result<()> {
    let mut known = HashSet::new();
    for path in paths {
        let file = target(path);
        let same = std::path::absolute(&file).unwrap_or(file);
        if !is_device(&same) && !known.insert(same) {
            let name = match path.as_os_str() == "-" {
                true => "standard output (-)".to_owned(),
                false => path.display().to_string(),
            };
            bail!("{name} would be written twice. Choose another name for one of them.");
        }
    }
    Ok(())
}

/// Devices and pipes take one thing after the other.
pub(crate) fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Refuses to write over what is read: the recording may be all there is.
pub(crate) fn spare(input: &Path, output: &Path) -> anyhow::Result<()> {
    let [input_file, output_file] = [input, output].map(|path| fs::canonicalize(path).ok());
    if input_file.is_some_and(|input| input.is_file() && Some(input) == output_file) {
        bail!("{} is read here, and stays. Choose another name.", input.display());
    }
    Ok(())
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
fn replace(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    settle: impl FnOnce() -> Settled,
) -> io::Result<PathBuf> {
    let (_removal, part) = Removal::of(|| part_of(&target(path)))?;
    fill(part.as_file(), write)?;
    let settled = settle();
    let target = target(&settled.path);
    keep_rights(if target.exists() { &target } else { path }, part.as_file())?;
    part.persist(target).map_err(|failed| failed.error)?;
    Ok(settled.path)
}

/// A file that is complete, but does not have its name yet.
pub(crate) struct Part {
    path: PathBuf,
    part: NamedTempFile,
    removal: Removal,
}

/// Writes what is to appear at `path` together with others.
pub(crate) fn part(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<Part> {
    let written = || {
        let (removal, part) = Removal::of(|| part_of(&target(path)))?;
        fill(part.as_file(), write)?;
        keep_rights(path, part.as_file())?;
        Ok(Part { path: target(path), part, removal })
    };
    written().map_err(|error| cannot_write(path, error))
}

/// Files that belong together get their names: all of them, or none if the command is interrupted.
pub(crate) fn appear(parts: Vec<Part>) -> anyhow::Result<()> {
    let (files, removals): (Vec<_>, Vec<_>) =
        parts.into_iter().map(|it| ((it.path, it.part), it.removal)).unzip();
    let appeared = uninterrupted(|| {
        files.into_iter().try_for_each(|(path, part)| {
            part.persist(&path).map(|_| ()).map_err(|failed| cannot_write(&path, failed.error))
        })
    });
    drop(removals);
    appeared
}

/// The file that a link points to, not the link, also where that file is still to be made.
fn target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match (fs::canonicalize(&path), fs::read_link(&path)) {
            (Ok(file), _) => return file,
            (_, Ok(next)) => path = path.parent().unwrap_or(Path::new("")).join(next),
            _ => break,
        }
    }
    path
}

/// A file for what will stand at `path` when it is complete.
fn part_of(path: &Path) -> io::Result<NamedTempFile> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ggprof-").suffix(".part");
    // What is replaced may be for the user alone; otherwise as any other file: the user's mask takes
    // away what it shall.
    with_mode(&mut builder, if path.exists() { 0o600 } else { 0o666 });
    builder.tempfile_in(directory.unwrap_or(Path::new("."))).map_err(without_its_name)
}

/// Whoever could read what is replaced can read what replaces it, and nobody else.
fn keep_rights(replaced: &Path, by: &File) -> io::Result<()> {
    let Ok(before) = fs::metadata(replaced) else { return Ok(()) };
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        /// What its group may do with a file.
        const GROUP: u32 = 0o070;
        let now = by.metadata()?;
        // Only root can give files away; others can to groups that they are in.
        if before.uid() != now.uid() {
            let _ = fchown(by, Some(before.uid()), None);
        }
        let is_of_group = before.gid() == now.gid() || fchown(by, None, Some(before.gid())).is_ok();
        let mode = before.permissions().mode();
        // Another group must not read what this one could.
        let mode = if is_of_group { mode } else { mode & !GROUP };
        by.set_permissions(PermissionsExt::from_mode(mode))
    }
    #[cfg(not(unix))]
    {
        by.set_permissions(before.permissions())
    }
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
