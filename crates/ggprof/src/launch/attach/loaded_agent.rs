//! The agent that a program has loaded already, for an earlier attach.

use super::call::open_memory;
use super::maps::{self, Mapping};
use anyhow::bail;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// The beginning of the agent's name.
const NAME: &str = "libggprof_agent";
/// The kernel puts this in front of the names of files that are in memory only.
const IN_MEMORY: &str = "memfd:";

#[derive(Debug)]
pub(super) struct LoadedAgent {
    code: Mapping,
    /// Its first part, where its functions are listed.
    front: Mapping,
}

impl LoadedAgent {
    pub(super) fn find(maps: &[Mapping]) -> Option<LoadedAgent> {
        let code = maps.iter().find(|it| it.is_code && is_agent(it.file_name()))?;
        let start = maps::start_of_file(maps, code)?;
        let front = maps.iter().find(|mapping| mapping.memory.start == start)?;
        Some(LoadedAgent { code: code.clone(), front: front.clone() })
    }

    pub(super) fn inode(&self) -> u64 {
        self.code.inode
    }

    /// A file with what the program has loaded: its own, if it is still there, or the one that would have
    /// been loaded now, if it is the same.
    pub(super) fn file<'p>(&'p self, pid: u32, other: &'p Path) -> anyhow::Result<&'p Path> {
        let own = &*self.code.path;
        if own.metadata().is_ok_and(|found| found.ino() == self.code.inode) {
            return Ok(own);
        }
        if !self.begins_as(pid, other)? {
            bail!(
                "process {pid} has loaded the agent of another version of ggprof, whose file is gone. Use \
                 that version, or start the program again."
            );
        }
        Ok(other)
    }

    fn begins_as(&self, pid: u32, file: &Path) -> anyhow::Result<bool> {
        let Range { start, end } = self.front.memory;
        let mut wanted = Vec::new();
        File::open(file)?.take(end - start).read_to_end(&mut wanted)?;
        let mut loaded = vec![0; wanted.len()];
        open_memory(pid)?.read_exact_at(&mut loaded, start)?;
        Ok(loaded == wanted)
    }
}

fn is_agent(name: &str) -> bool {
    name.strip_prefix(IN_MEMORY).unwrap_or(name).starts_with(NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_wherever_it_is() {
        assert!(is_agent("libggprof_agent.so"));
        assert!(is_agent("libggprof_agent.so (deleted)"));
        assert!(is_agent("memfd:libggprof_agent.so (deleted)"));
        assert!(!is_agent("memfd:other"));
    }
}
