//! Where functions of a program's libraries are, from the libraries' files.

use super::maps::{self, Mapping};
use anyhow::{Context, bail};
use ggprof_agents::Libc;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader, Sym};
use object::{Endianness, elf};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Whether a library's file has such a name.
type IsFile = fn(&str) -> bool;

/// How long a program may take to come to its C library.
const TIME_TO_LOAD: Duration = Duration::from_secs(1);
const BETWEEN: Duration = Duration::from_millis(2);

/// A program that was started just now is still being loaded.
pub(super) fn wait_for_libc(pid: u32, libc: Libc) -> anyhow::Result<()> {
    let begun = Instant::now();
    while !maps::of(pid)?
        .iter()
        .any(|mapping| mapping.is_code && is_file_of(libc)(mapping.file_name()))
    {
        if begun.elapsed() > TIME_TO_LOAD {
            bail!(
                "the program has not come to its C library yet: it is still being loaded. Try again"
            );
        }
        std::thread::sleep(BETWEEN);
    }
    Ok(())
}

/// The function that opens libraries.
pub(super) fn of_loader(pid: u32, libc: Libc) -> anyhow::Result<u64> {
    let maps = maps::of(pid)?;
    // Before glibc 2.34 the program's own `dlopen` is in a library that it may do without.
    let places: &[(IsFile, &str)] = match libc {
        Libc::Glibc => &[
            (is_libc, "dlopen"),
            (|name| name.starts_with("libdl.so") || name.starts_with("libdl-"), "dlopen"),
            (is_libc, "__libc_dlopen_mode"),
        ],
        Libc::Musl => &[(is_musl, "dlopen")],
    };
    for (is_it, function) in places {
        let file = maps.iter().find(|mapping| mapping.is_code && is_it(mapping.file_name()));
        if let Some(file) = file
            && let Some(address) = address(&maps, file, function)?
        {
            return Ok(address);
        }
    }
    bail!("the function that opens libraries was not found in the program's C library")
}

/// The function that tells where a thread's `errno` is.
pub(super) fn of_error_number(pid: u32, libc: Libc) -> anyhow::Result<u64> {
    let is_it = is_file_of(libc);
    let maps = maps::of(pid)?;
    let file = maps.iter().find(|mapping| mapping.is_code && is_it(mapping.file_name()));
    let found = file.map(|file| address(&maps, file, "__errno_location")).transpose()?;
    found.flatten().context("the program's C library does not tell where errors are kept")
}

fn is_file_of(libc: Libc) -> IsFile {
    match libc {
        Libc::Glibc => is_libc,
        Libc::Musl => is_musl,
    }
}

fn is_musl(name: &str) -> bool {
    name.starts_with("ld-musl") || name == "libc.so"
}

fn is_libc(name: &str) -> bool {
    name.starts_with("libc.so") || name.starts_with("libc-2")
}

/// A function of the agent, whose file is read before anything stands still.
pub(super) struct OfAgent {
    found: Found,
    inode: u64,
}

impl OfAgent {
    /// In a file that is the same as the one with this number.
    pub(super) fn find(file: &Path, inode: u64, function: &str) -> anyhow::Result<OfAgent> {
        let found = symbol(file, function)?.context("the agent is of another version")?;
        Ok(OfAgent { found, inode })
    }

    /// Where it is in a process that has loaded the agent.
    pub(super) fn address(&self, pid: u32) -> anyhow::Result<u64> {
        let maps = maps::of(pid)?;
        let loaded = maps.iter().find(|mapping| mapping.is_code && mapping.inode == self.inode);
        let address = loaded.and_then(|loaded| self.found.address(&maps, loaded));
        address.context("the agent is not where it was loaded")
    }
}

/// `None` where the file has no such function.
fn address(maps: &[Mapping], mapping: &Mapping, function: &str) -> anyhow::Result<Option<u64>> {
    let path = &mapping.path;
    if std::fs::metadata(path).map(|found| found.ino()).ok() != Some(mapping.inode) {
        bail!(
            "{} was replaced since the program started, so what the program has of it is not known. \
             Start the program again.",
            path.display()
        );
    }
    Ok(symbol(path, function)?.and_then(|found| found.address(maps, mapping)))
}

/// A function in a file.
struct Found {
    address: u64,
    /// The first address that the file wants to be loaded at.
    first: u64,
}

impl Found {
    fn address(&self, maps: &[Mapping], of: &Mapping) -> Option<u64> {
        Some(maps::start_of_file(maps, of)? + (self.address - self.first))
    }
}

/// Where ggml's functions are. A thread in one of them is not in the C library; in other functions of a
/// program it may be in an allocator that the program brings with it.
pub(super) fn code_of_ggml(maps: &[Mapping]) -> Vec<Range<u64>> {
    let code = maps.iter().filter(|mapping| mapping.is_code && mapping.inode != 0);
    let of_file = |mapping: &Mapping| match mapping.file_name().starts_with("libggml") {
        true => vec![mapping.memory.clone()],
        false => functions_of_ggml(maps, mapping).unwrap_or_default(),
    };
    code.flat_map(of_file).collect()
}

fn functions_of_ggml(maps: &[Mapping], mapping: &Mapping) -> Option<Vec<Range<u64>>> {
    let start = maps::start_of_file(maps, mapping)?;
    let data = std::fs::read(&mapping.path).ok()?;
    let header = FileHeader64::<Endianness>::parse(&*data).ok()?;
    let endian = header.endian().ok()?;
    let first = first_address(header, &data).ok()?;
    let sections = header.sections(endian, &*data).ok()?;
    let symbols = sections.symbols(endian, &*data, elf::SHT_SYMTAB).ok()?;
    let is_ggmls = |symbol: &&elf::Sym64<Endianness>| {
        let name = symbol.name(endian, symbols.strings()).unwrap_or_default();
        symbol.st_type() == elf::STT_FUNC && name.windows(5).any(|part| part == b"ggml_")
    };
    let range = |symbol: &elf::Sym64<Endianness>| {
        let from = start + symbol.st_value(endian).checked_sub(first)?;
        Some(from..from + symbol.st_size(endian))
    };
    Some(symbols.iter().filter(is_ggmls).filter_map(range).collect())
}

/// The first one that a file wants to be loaded at.
fn first_address(header: &FileHeader64<Endianness>, data: &[u8]) -> object::Result<u64> {
    let endian = header.endian()?;
    let segments = header.program_headers(endian, data)?;
    let loaded = segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD);
    Ok(loaded.map(|segment| segment.p_vaddr(endian)).min().unwrap_or(0))
}

fn symbol(file: &Path, function: &str) -> anyhow::Result<Option<Found>> {
    let data = std::fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    find(&data, function).with_context(|| format!("{} is damaged", file.display()))
}

fn find(data: &[u8], function: &str) -> object::Result<Option<Found>> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let first = first_address(header, data)?;
    let sections = header.sections(endian, data)?;
    let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
    let is_it = |symbol: &&elf::Sym64<Endianness>| {
        let is_named =
            symbol.name(endian, symbols.strings()).is_ok_and(|name| name == function.as_bytes());
        is_named && symbol.st_shndx(endian) != elf::SHN_UNDEF && symbol.st_value(endian) != 0
    };
    let found = symbols.iter().find(is_it);
    Ok(found.map(|symbol| Found { address: symbol.st_value(endian), first }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_of_this_process_is_where_it_says() {
        let found = of_loader(std::process::id(), Libc::Glibc).unwrap();
        assert_eq!(found, libc::dlopen as *const () as u64);
    }
}
