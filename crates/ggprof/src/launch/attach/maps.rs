//! What a process has in its address space, as the kernel lists it.

use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) memory: Range<u64>,
    pub(super) is_code: bool,
    pub(super) offset: u64,
    pub(super) inode: u64,
    /// Empty for memory that is of no file; `[stack]` and the like are names.
    pub(super) path: PathBuf,
}

impl Mapping {
    pub(super) fn file_name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }
}

/// Where the file begins in memory that this is a part of. Programs may have it in memory as data, too, as
/// those do that look up their own symbols.
pub(super) fn start_of_file(maps: &[Mapping], part: &Mapping) -> Option<u64> {
    let starts = maps.iter().filter(|it| it.inode == part.inode && it.offset == 0);
    let before = starts.map(|it| it.memory.start).filter(|&start| start <= part.memory.start);
    before.max()
}

pub(super) fn of(pid: u32) -> io::Result<Vec<Mapping>> {
    let directory = Path::new("/proc").join(pid.to_string());
    let text = std::fs::read(directory.join("maps"))?;
    let mut maps: Vec<Mapping> =
        String::from_utf8_lossy(&text).lines().filter_map(mapping).collect();
    // The program's own file may have been replaced since, or be gone; the kernel still leads to it. It
    // keeps its name otherwise: it may be a loader that was told to run something.
    let link = directory.join("exe");
    if let Ok(program) = link.read_link() {
        let found = program.metadata().ok().map(|found| found.ino());
        let is_it = |mapping: &Mapping| mapping.path == program && found != Some(mapping.inode);
        let of_program = maps.iter_mut().filter(|mapping| is_it(mapping));
        of_program.for_each(|mapping| mapping.path.clone_from(&link));
    }
    Ok(maps)
}

/// `55d0-55d1 r-xp 00002000 08:01 1234   /usr/bin/it`
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let offset = number(words.next()?)?;
    let inode = words.nth(1)?.parse().ok()?;
    let path = words.next().unwrap_or_default().trim_start();
    Some(Mapping {
        memory: number(start)?..number(end)?,
        is_code: rights.contains('x'),
        offset,
        inode,
        path: PathBuf::from(path),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let line = "7f00-7f80 r-xp 00002000 08:01 42                 /a b/libc.so.6 (deleted)";
        let found = mapping(line).unwrap();
        assert_eq!(found.memory, 0x7f00..0x7f80);
        assert_eq!((found.is_code, found.offset, found.inode), (true, 0x2000, 42));
        assert_eq!(found.file_name(), "libc.so.6 (deleted)");
        let anonymous = mapping("7f00-7f80 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!((anonymous.path, anonymous.is_code), (PathBuf::new(), false));
        assert_eq!(mapping("nonsense"), None);
    }

    #[test]
    fn a_file_begins_where_its_code_belongs_to() {
        let maps =
            ["1000-2000 r--p 0", "5000-6000 r--p 0", "6000-7000 r-xp 1000", "9000-a000 r--p 0"]
                .map(|line| mapping(&format!("{line} 08:01 42 /libc.so.6")).unwrap());
        assert_eq!(start_of_file(&maps, &maps[2]), Some(0x5000));
    }

    #[test]
    fn this_process_has_code() {
        assert!(of(std::process::id()).unwrap().iter().any(|it| it.is_code && it.inode != 0));
    }
}
