//! Which process a recording belongs to, while the process lives. The number in the file's name is
//! the process id in the process's own PID namespace, which may differ from ours, and /proc may
//! show a third one. But the process that records has the file mapped.

use ggprof_spool::names;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The process by its directory in /proc.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holder {
    process: PathBuf,
    inode: u64,
}

impl Holder {
    /// The living process that has the recording mapped. `pid` is tried first, and believed
    /// where its mappings may not be seen.
    pub(super) fn find(recording: &Metadata, pid: u32) -> Option<Holder> {
        let named = Path::new("/proc").join(pid.to_string());
        let others = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let others = others.map(|entry| entry.path()).filter(|path| is_process(path));
        let all = [named.clone()].into_iter().chain(others);
        let mut all = all.map(|process| Holder { process, inode: recording.ino() });
        all.find(|holder| holder.has_it_mapped() == Some(true))
            .or_else(|| Some(Holder { process: named, inode: recording.ino() }))
            .filter(Holder::is_alive)
    }

    pub(super) fn is_alive(&self) -> bool {
        self.has_it_mapped().unwrap_or_else(|| self.is_running())
    }

    /// `None` where that may not be seen. A line is `addresses rights offset device inode
    /// path`; the device is left out: file systems with subvolumes tell it otherwise elsewhere.
    fn has_it_mapped(&self) -> Option<bool> {
        let maps = std::fs::read(self.process.join("maps")).ok()?;
        let maps = String::from_utf8_lossy(&maps);
        let inode = self.inode.to_string();
        Some(maps.lines().any(|line| {
            line.contains(names::RECORDING_ENDING)
                && line.split_ascii_whitespace().nth(4) == Some(&inode)
        }))
    }

    /// Without /proc this is not known; then the process counts as running.
    fn is_running(&self) -> bool {
        if !Path::new("/proc/self").exists() {
            return true;
        }
        let status = std::fs::read_to_string(self.process.join("stat")).unwrap_or_default();
        // The name before may hold anything, brackets included.
        status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    }
}

fn is_process(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_nobody_has_mapped_has_no_holder() {
        let this_file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let found = std::fs::metadata(this_file).unwrap();
        assert_eq!(Holder::find(&found, std::process::id()), None);
        assert_eq!(Holder::find(&found, u32::MAX), None);
    }
}
