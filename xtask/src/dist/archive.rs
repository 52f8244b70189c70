//! Archives with nothing in them that differs from build to build: no times, no owners, entries in
//! the order of their names.

use anyhow::Context;
use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc, GzBuilder};
use std::io::Write;

/// A file in an archive.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_program: bool,
}

impl Entry {
    pub(crate) fn new(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: bytes.into(), is_program: false }
    }

    pub(crate) fn mode(&self) -> u32 {
        if self.is_program { 0o755 } else { 0o644 }
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder: GzEncoder<Vec<u8>> =
        GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// A tar archive of these files and of the directories that they are in, each path behind `before`.
pub(crate) fn tar(before: &str, entries: &[Entry]) -> anyhow::Result<Vec<u8>> {
    const BLOCK: usize = 512;
    let mut archive = Vec::new();
    let mut directories: Vec<String> = Vec::new();
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|one, other| one.path.cmp(&other.path));
    for entry in sorted {
        let path = format!("{before}{}", entry.path);
        for (end, _) in path.match_indices('/') {
            let directory = &path[..=end];
            if !directories.iter().any(|known| known == directory) {
                archive.extend(tar_head(directory, b'5', 0o755, 0)?);
                directories.push(directory.to_owned());
            }
        }
        archive.extend(tar_head(&path, b'0', entry.mode(), entry.bytes.len())?);
        archive.extend_from_slice(&entry.bytes);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    Ok(archive)
}

/// As POSIX lays it out (`ustar`). The checksum counts its own field as spaces.
fn tar_head(path: &str, kind: u8, mode: u32, length: usize) -> anyhow::Result<[u8; 512]> {
    let mut head = [0_u8; 512];
    let mut put = |at: usize, text: &[u8]| head[at..at + text.len()].copy_from_slice(text);
    let fits = path.len() <= 100;
    fits.then(|| put(0, path.as_bytes())).with_context(|| format!("{path} is too long for tar"))?;
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{length:011o}").as_bytes());
    put(136, b"00000000000");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000root");
    put(297, b"root");
    let sum: u32 = head.iter().map(|&byte| u32::from(byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(head)
}

/// A zip archive, in the given order. Its times are the earliest that the format knows.
pub(crate) fn zip(entries: &[Entry]) -> anyhow::Result<Vec<u8>> {
    const DEFLATED: u16 = 8;
    const FIRST_OF_1980: u32 = 0x0021_0000;
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&entry.bytes)?;
        let packed = encoder.finish()?;
        let mut crc = Crc::new();
        crc.update(&entry.bytes);
        let mut common = Vec::new();
        common.extend(20_u16.to_le_bytes());
        common.extend(0_u16.to_le_bytes());
        common.extend(DEFLATED.to_le_bytes());
        common.extend(FIRST_OF_1980.to_le_bytes());
        common.extend(crc.sum().to_le_bytes());
        common.extend(u32::try_from(packed.len())?.to_le_bytes());
        common.extend(u32::try_from(entry.bytes.len())?.to_le_bytes());
        common.extend(u16::try_from(entry.path.len())?.to_le_bytes());
        common.extend(0_u16.to_le_bytes());
        let offset = u32::try_from(archive.len())?;
        directory.extend(b"PK\x01\x02");
        // Made by Unix: its modes are in the upper half of the attributes.
        directory.extend(0x0314_u16.to_le_bytes());
        directory.extend(&common);
        directory.extend([0; 6]);
        directory.extend(((0o100_000 | entry.mode()) << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(entry.path.as_bytes());
        archive.extend(b"PK\x03\x04");
        archive.extend(&common);
        archive.extend(entry.path.as_bytes());
        archive.extend(packed);
    }
    let (count, start) = (u16::try_from(entries.len())?, u32::try_from(archive.len())?);
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    archive.extend(u32::try_from(directory.len())?.to_le_bytes());
    archive.extend(start.to_le_bytes());
    archive.extend([0, 0]);
    Ok(archive)
}

/// An archive of `ar`, as Debian's packages are.
pub(crate) fn ar(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let head =
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100_644, bytes.len());
        archive.extend(head.as_bytes());
        archive.extend(bytes);
        archive.resize(archive.len().next_multiple_of(2), b'\n');
    }
    archive
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn entries() -> Vec<Entry> {
        let program = Entry { is_program: true, ..Entry::new("b/run", "#!/bin/sh\n") };
        vec![program, Entry::new("a.txt", "text\n".repeat(100))]
    }

    /// What a tool prints that gets these bytes.
    fn told(tool: &[&str], bytes: &[u8]) -> String {
        let mut child = Command::new(tool[0]);
        child.args(&tool[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().expect("it is installed");
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    }

    #[test]
    fn tar_understands_it() {
        let archive = tar("x/", &entries()).unwrap();
        let listed = told(&["tar", "-tvf", "-", "--utc", "--full-time"], &archive);
        let lines: Vec<String> = listed
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "drwxr-xr-x root/root 0 1970-01-01 00:00:00 x/",
                "-rw-r--r-- root/root 500 1970-01-01 00:00:00 x/a.txt",
                "drwxr-xr-x root/root 0 1970-01-01 00:00:00 x/b/",
                "-rwxr-xr-x root/root 10 1970-01-01 00:00:00 x/b/run",
            ]
        );
        assert_eq!(told(&["tar", "-xOf", "-", "x/b/run"], &archive), "#!/bin/sh\n");
        assert_eq!(
            told(&["gzip", "-dc"], &gzip(&archive).unwrap()),
            String::from_utf8(archive).unwrap()
        );
    }

    #[test]
    fn python_understands_its_zip() {
        let script = "import io, sys, zipfile\n\
                      z = zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read()))\n\
                      assert z.testzip() is None\n\
                      for i in z.infolist(): print(i.filename, i.file_size, oct(i.external_attr >> 16))";
        let listed = told(&["python3", "-c", script], &zip(&entries()).unwrap());
        assert_eq!(listed, "b/run 10 0o100755\na.txt 500 0o100644\n");
    }

    #[test]
    fn ar_pads_its_members() {
        let archive = ar(&[("one", b"1".to_vec()), ("two", b"22".to_vec())]);
        assert_eq!(archive.len(), 8 + 60 + 2 + 60 + 2);
        assert!(archive.starts_with(
            b"!<arch>\none             0           0     0     100644  1         `\n1\n"
        ));
    }
}
