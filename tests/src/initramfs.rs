//! The archive that Linux unpacks into memory as its first file system ("newc" of cpio).

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Kinds of files, as the mode of a file has them.
const FOLDER: u32 = 0o040_000;
const PROGRAM: u32 = 0o100_755;

/// One that is being written. A folder comes before what lies in it.
#[derive(Debug)]
pub(crate) struct Initramfs {
    file: BufWriter<File>,
    entries: u32,
}

impl Initramfs {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(File::create(path)?), entries: 0 })
    }

    /// An empty folder.
    pub(crate) fn folder(&mut self, name: &str) -> io::Result<()> {
        self.entry(name, FOLDER | 0o755, b"")
    }

    /// A file that can be executed.
    pub(crate) fn program(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.entry(name, PROGRAM, bytes)
    }

    /// A copy of a file or link, or of a folder with all that is in it; of a folder without a name, what
    /// is in it.
    pub(crate) fn copy(&mut self, name: &str, from: &Path) -> io::Result<()> {
        let metadata = fs::symlink_metadata(from)?;
        if metadata.is_symlink() {
            return self.entry(name, metadata.mode(), fs::read_link(from)?.as_os_str().as_bytes());
        }
        if !metadata.is_dir() {
            return self.entry(name, metadata.mode(), &fs::read(from)?);
        }
        if !name.is_empty() {
            self.entry(name, metadata.mode(), b"")?;
        }
        for inside in fs::read_dir(from)? {
            let inside = inside?;
            let below = format!("{name}/{}", inside.file_name().to_string_lossy());
            self.copy(below.trim_start_matches('/'), &inside.path())?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.entry("TRAILER!!!", 0, b"")?;
        self.file.flush()
    }

    /// A head of numbers in hexadecimal digits, the name, and the bytes, both filled up to four.
    fn entry(&mut self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        self.entries += 1;
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let name_length = u32::try_from(name.len() + 1).map_err(io::Error::other)?;
        // Number, mode, owner, group, links, time, length, devices, length of the name, sum.
        let head = [self.entries, mode, 0, 0, 1, 0, length, 0, 0, 0, 0, name_length, 0];
        self.file.write_all(b"070701")?;
        for number in head {
            write!(self.file, "{number:08X}")?;
        }
        self.file.write_all(name.as_bytes())?;
        // The head has 110 bytes, and a zero ends the name.
        self.file.write_all(&[0; 4][..1 + filling(110 + name.len() + 1)])?;
        self.file.write_all(bytes)?;
        self.file.write_all(&[0; 4][..filling(bytes.len())])
    }
}

/// How many bytes are missing to a multiple of four.
fn filling(length: usize) -> usize {
    length.next_multiple_of(4) - length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_folders_and_links_are_in_the_archive() {
        let directory = tempfile::tempdir().unwrap();
        let from = directory.path().join("from");
        fs::create_dir_all(from.join("etc")).unwrap();
        fs::write(from.join("etc/words"), "hello").unwrap();
        std::os::unix::fs::symlink("etc", from.join("also")).unwrap();
        let archive = directory.path().join("archive");
        let mut initramfs = Initramfs::create(&archive).unwrap();
        initramfs.folder("proc").unwrap();
        initramfs.program("init", b"#!/bin/sh\n").unwrap();
        initramfs.copy("", &from).unwrap();
        initramfs.finish().unwrap();
        let bytes = fs::read(archive).unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let mut found = listed(&bytes);
        found[2..].sort();
        let expected = [
            ("proc", 0o040_755, ""),
            ("init", 0o100_755, "#!/bin/sh\n"),
            ("also", 0o120_755, "etc"),
            ("etc", 0o040_755, ""),
            ("etc/words", 0o100_644, "hello"),
        ];
        let expected = expected.map(|(name, mode, text)| (name.to_owned(), mode, text.to_owned()));
        assert_eq!(found, expected);
    }

    /// Names, modes and contents, read as the format says.
    fn listed(mut bytes: &[u8]) -> Vec<(String, u32, String)> {
        let mut entries = Vec::new();
        loop {
            let head = std::str::from_utf8(&bytes[..110]).unwrap();
            let number = |at: usize| u32::from_str_radix(&head[6 + 8 * at..][..8], 16).unwrap();
            let (mode, length, name_length) = (number(1), number(6) as usize, number(11) as usize);
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let name = text(&bytes[110..110 + name_length - 1]);
            let contents = (110 + name_length).next_multiple_of(4);
            if name == "TRAILER!!!" {
                return entries;
            }
            entries.push((name, mode & !0o022, text(&bytes[contents..contents + length])));
            bytes = &bytes[(contents + length).next_multiple_of(4)..];
        }
    }
}
