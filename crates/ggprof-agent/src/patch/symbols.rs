//! Functions of a loaded object by name, exported or not, from the symbol tables of its file. The
//! file may have been replaced since it was loaded. So a function counts only if its code in memory
//! is that of the file, except for its first bytes, which the agent may have changed already.
//!
//! The crate `object` wants a file as a whole, mapped or in a cache that keeps all that was read. A
//! mapped file that somebody shortens would end the program, and tables may have 100 MB; so only the
//! sections that are asked for are read here, piece by piece.

use std::ffi::CStr;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::loaded_object::LoadedObject;
use crate::{arch, memory};

/// A function of a loaded object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: Vec<u8>,
    pub(crate) address: usize,
    bytes: usize,
}

impl Function {
    pub(crate) fn code(&self) -> &[u8] {
        // SAFETY: `functions` saw that all of it is loaded code.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.bytes) }
    }
}

/// Functions whose names are wanted. None where the file cannot be read.
pub(crate) fn functions(object: &LoadedObject, wanted: impl Fn(&[u8]) -> bool) -> Vec<Function> {
    let elf = object.file().and_then(|path| Elf::open(path.as_os_str()));
    elf.map(|elf| elf.functions(object, &wanted)).unwrap_or_default()
}

/// Whether one of the names is among those of symbols that the object need not show.
/// Far quicker than looking for the function; most libraries have no such table at all.
pub(crate) fn may_hide(object: &LoadedObject, names: &[&CStr]) -> bool {
    let elf = object.file().and_then(|path| Elf::open(path.as_os_str()));
    elf.is_some_and(|elf| {
        let all = elf.tables().filter(|(table, _)| table.kind == SYMTAB);
        all.into_iter().any(|(_, texts)| elf.holds_text(texts, names))
    })
}

/// Whether a text is among the constants that the object's code uses. `None` where its file does
/// not tell.
pub(crate) fn has_text(object: &LoadedObject, text: &CStr) -> Option<bool> {
    let elf = Elf::open(object.file()?.as_os_str())?;
    let constants: Vec<Vec<u8>> =
        elf.constants()?.map(|section| elf.read(section)).collect::<Option<_>>()?;
    let is_there = constants.iter().any(|constants| contains(constants, text.to_bytes_with_nul()));
    (!constants.is_empty()).then_some(is_there)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    // SAFETY: both are valid for their lengths, and only read.
    let found =
        unsafe { libc::memmem(text.as_ptr().cast(), text.len(), part.as_ptr().cast(), part.len()) };
    !found.is_null()
}

/// Symbol tables larger than this are left alone: a program that opens such a library
/// cannot wait for us. That of a browser with all of its symbols is smaller.
const LARGEST_TABLE: u64 = 128 << 20;
/// So much of a table is looked at at once.
const PIECE: usize = 1 << 20;

struct Elf {
    file: File,
    sections: Vec<Section>,
    /// Which of them has the names of all.
    names: usize,
}

/// A section header, as ELF writes it.
#[derive(Clone, Copy)]
struct Section {
    name: u32,
    kind: u32,
    offset: u64,
    bytes: u64,
    link: u32,
}

const SYMTAB: u32 = 2;
const DYNSYM: u32 = 11;
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;

impl Elf {
    fn open(path: &std::ffi::OsStr) -> Option<Elf> {
        let file = File::open(path).ok()?;
        let mut head = [0; 64];
        file.read_exact_at(&mut head, 0).ok()?;
        if !head.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let (offset, count) = (number::<8>(&head, 0x28)?, number::<2>(&head, 0x3c)? as usize);
        let mut headers = memory::zeros(count * SECTION_BYTES)?;
        file.read_exact_at(&mut headers, offset).ok()?;
        let sections = headers.chunks_exact(SECTION_BYTES).map(Section::read);
        let sections = sections.collect::<Option<Vec<_>>>()?;
        Some(Elf { file, sections, names: number::<2>(&head, 0x3e)? as usize })
    }

    /// Each table of symbols with the table of their names.
    fn tables(&self) -> impl Iterator<Item = (Section, Section)> {
        let tables = self.sections.iter().filter(|section| matches!(section.kind, SYMTAB | DYNSYM));
        tables.filter_map(|table| Some((*table, *self.sections.get(table.link as usize)?)))
    }

    /// The sections of constants, by their names: others that are only read may be far larger,
    /// a device's code for one.
    fn constants(&self) -> Option<impl Iterator<Item = Section>> {
        let names = self.read(*self.sections.get(self.names)?)?;
        let is_constants = move |section: &&Section| {
            let name = names.get(section.name as usize..).unwrap_or_default();
            [b".rodata".as_slice(), b".lrodata"].iter().any(|it| name.starts_with(it))
        };
        Some(self.sections.iter().filter(is_constants).copied())
    }

    fn functions(&self, object: &LoadedObject, wanted: &dyn Fn(&[u8]) -> bool) -> Vec<Function> {
        let mut found: Vec<Function> = Vec::new();
        for (table, names) in self.tables() {
            let (Some(symbols), Some(names)) = (self.read(table), self.read(names)) else {
                continue;
            };
            for symbol in symbols.chunks_exact(SYMBOL_BYTES) {
                let function = function(symbol, &names, object.base);
                let Some(function) = function.filter(|function| wanted(&function.name)) else {
                    continue;
                };
                if !found.contains(&function) && self.is_loaded(object, &function) {
                    found.push(function);
                }
            }
        }
        found
    }

    /// Whether the file's code is what is in memory.
    fn is_loaded(&self, object: &LoadedObject, function: &Function) -> bool {
        let end = function.address.saturating_add(function.bytes);
        if function.bytes == 0
            || !object.holds_code(function.address)
            || !object.holds_code(end - 1)
        {
            return false;
        }
        let Some(offset) = object.file_offset(function.address) else { return false };
        let changeable = function.bytes.min(arch::MOST_CHANGED);
        let Some(mut code) = memory::zeros(function.bytes - changeable) else { return false };
        self.file.read_exact_at(&mut code, offset + changeable as u64).is_ok()
            && code == function.code()[changeable..]
    }

    /// Whether one of the names, each shorter than a piece, is in the section.
    fn holds_text(&self, section: Section, names: &[&CStr]) -> bool {
        if section.bytes > LARGEST_TABLE {
            return false;
        }
        let longest = names.iter().map(|name| name.count_bytes()).max().unwrap_or(0);
        let Some(mut piece) = memory::zeros(PIECE.min(section.bytes as usize)) else {
            return false;
        };
        // Pieces overlap: a name may lie across a border.
        (0..section.bytes).step_by(PIECE - longest).any(|at| {
            let bytes = piece.len().min((section.bytes - at) as usize);
            let piece = &mut piece[..bytes];
            self.file.read_exact_at(piece, section.offset + at).is_ok()
                && names.iter().any(|name| contains(piece, name.to_bytes_with_nul()))
        })
    }

    fn read(&self, section: Section) -> Option<Vec<u8>> {
        if section.bytes > LARGEST_TABLE {
            return None;
        }
        let mut bytes = memory::zeros(section.bytes as usize)?;
        self.file.read_exact_at(&mut bytes, section.offset).ok()?;
        Some(bytes)
    }
}

impl Section {
    fn read(header: &[u8]) -> Option<Section> {
        Some(Section {
            name: number::<4>(header, 0)? as u32,
            kind: number::<4>(header, 4)? as u32,
            offset: number::<8>(header, 24)?,
            bytes: number::<8>(header, 32)?,
            link: number::<4>(header, 40)? as u32,
        })
    }
}

/// The symbol, if it is a function that the object defines.
fn function(symbol: &[u8], names: &[u8], base: usize) -> Option<Function> {
    const FUNCTION: u8 = 2;
    let is_function = symbol.get(4)? & 0xf == FUNCTION;
    let (section, value) = (number::<2>(symbol, 6)?, number::<8>(symbol, 8)? as usize);
    if !is_function || section == 0 || value == 0 {
        return None;
    }
    let name = names.get(number::<4>(symbol, 0)? as usize..)?;
    let name = name.split(|&byte| byte == 0).next()?.to_vec();
    let address = base.checked_add(value)?;
    Some(Function { name, address, bytes: number::<8>(symbol, 16)? as usize })
}

/// A little-endian number of `N` bytes.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes: [u8; N] = bytes.get(at..at + N)?.try_into().ok()?;
    Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[unsafe(no_mangle)]
    extern "C" fn ggprof_function_for_a_test() -> u32 {
        std::hint::black_box(42)
    }

    #[test]
    fn a_function_of_this_program_is_found_with_its_code() {
        let address = ggprof_function_for_a_test as *const () as usize;
        let here = LoadedObject::containing(address).expect("the test's own code is loaded");
        let found = functions(&here, |name| name == b"ggprof_function_for_a_test");
        assert_eq!(found.iter().map(|function| function.address).collect::<Vec<_>>(), [address]);
        assert!(!found[0].code().is_empty());
        assert!(may_hide(&here, &[c"ggprof_function_for_a_test"]));
        assert!(!may_hide(&here, &[c"ggprof_function_for_no_test"]));
        assert!(functions(&here, |name| name == b"no such function").is_empty());
    }

    #[test]
    fn texts_that_the_code_uses_are_told_from_others() {
        let used = std::hint::black_box(c"a text that this test uses");
        let here = LoadedObject::containing(ggprof_function_for_a_test as *const () as usize);
        let here = here.expect("the test's own code is loaded");
        assert_eq!(has_text(&here, used), Some(true));
        // Written backwards, so that it is not there as it is looked for.
        let other: Vec<u8> = b"sesu ydobon taht txet a".iter().rev().copied().collect();
        let other = std::ffi::CString::new(other).expect("no zero byte");
        assert_eq!(has_text(&here, &other), Some(false));
    }
}
