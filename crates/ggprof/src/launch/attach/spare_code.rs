//! Room for a few instructions in a program: behind the code of one of its libraries, where the last
//! page is not full. Nothing of the library is there, and nobody goes there but a thread that we send.

use super::maps::{self, Mapping};
use super::processor::way_back::CODE;
use super::tracee::Tracee;
use anyhow::Context;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The beginning of a file, where its segments are listed.
const FRONT_BYTES: usize = 4096;
const ALIGNMENT: u64 = 16;

/// Where there is room.
pub(super) fn find(maps: &[Mapping], memory: &File) -> anyhow::Result<u64> {
    let code = maps.iter().filter(|mapping| mapping.is_code && mapping.inode != 0);
    let rooms = code.filter_map(|mapping| behind_code(maps, mapping));
    let mut fit = rooms.filter(|&room| is_free(memory, room).unwrap_or(false));
    fit.next().context(
        "there is no room in the program for the instructions that bring its thread back. Start it \
         with `ggprof run`.",
    )
}

/// Puts the code there.
pub(super) fn put(tracee: &Tracee, memory: &File, room: u64) -> io::Result<()> {
    tracee.write_code(memory, room, CODE)
}

/// The address behind a library's code, if the rest of its last page is long enough.
fn behind_code(maps: &[Mapping], mapping: &Mapping) -> Option<u64> {
    let start = maps::start_of_file(maps, mapping)?;
    let mut front = vec![0; FRONT_BYTES];
    let file = File::open(&mapping.path).ok()?;
    file.read_exact_at(&mut front, 0).ok()?;
    let header = FileHeader64::<Endianness>::parse(&*front).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &*front).ok()?;
    let loaded = || segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
    let first = loaded().map(|segment| segment.p_vaddr(endian)).min()?;
    let ends = loaded()
        .filter(|segment| segment.p_flags(endian).contains(elf::PF_X))
        .map(|segment| start + segment.p_vaddr(endian) + segment.p_memsz(endian) - first);
    let mut rooms = ends.map(|end| end.next_multiple_of(ALIGNMENT));
    rooms.find(|room| {
        mapping.memory.contains(room) && room + CODE.len() as u64 <= mapping.memory.end
    })
}

/// Whether nothing is there, or our own code from another time.
fn is_free(memory: &File, room: u64) -> io::Result<bool> {
    let mut there = vec![0; CODE.len()];
    memory.read_exact_at(&mut there, room)?;
    Ok(there == CODE || there.iter().all(|&byte| byte == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_room() {
        let maps = maps::of(std::process::id()).unwrap();
        let memory = File::open("/proc/self/mem").unwrap();
        let room = find(&maps, &memory).unwrap();
        assert!(maps.iter().any(|it| it.is_code && it.memory.contains(&room)));
    }
}
