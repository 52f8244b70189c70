//! The symbols that loaded objects export, looked up in their own hash tables. This calls no
//! loader, opens no file and allocates nothing, because it runs in every process, before the
//! program has begun.

use std::ffi::{CStr, c_int, c_void};

use super::dynamic::Dynamic;
use super::loaded_object;
use crate::c_library::{ToldObject, told_objects};

/// Where the first object in the order of loading that shows the function has it.
pub(crate) fn first(name: &CStr) -> Option<usize> {
    search(name, |_| true)
}

/// The same in objects after the agent; if none of them has it, in any object but the agent.
pub(crate) fn behind_us(name: &CStr) -> Option<usize> {
    let mut passed_us = false;
    let behind = search(name, |object| {
        let is_ours = is_ours(object);
        passed_us |= is_ours;
        passed_us && !is_ours
    });
    behind.or_else(|| search(name, |object| !is_ours(object)))
}

/// The same, read from what the loader tells debuggers: `dl_iterate_phdr` may be a sanitizer's, which
/// works only when that has begun.
///
/// # Safety
/// No other thread opens or closes libraries meanwhile.
pub(crate) unsafe fn behind_us_for_debuggers(name: &CStr) -> Option<usize> {
    // SAFETY: the caller's contract.
    let objects = || unsafe { told_objects() };
    let is_ours = |object: &&ToldObject| loaded_object::is_ours(object.dynamic);
    let behind = objects().skip_while(|object| !is_ours(object));
    let mut others =
        behind.chain(objects()).filter(|object| object.dynamic != 0 && !is_ours(object));
    others.find_map(|object| find(object.base, object.dynamic, name))
}

fn is_ours(object: &libc::dl_phdr_info) -> bool {
    dynamic_section(object).is_some_and(loaded_object::is_ours)
}

/// Searches the objects that are wanted.
fn search(name: &CStr, mut is_wanted: impl FnMut(&libc::dl_phdr_info) -> bool) -> Option<usize> {
    let mut search = ExportSearch { name, is_wanted: &mut is_wanted, found: None };
    // SAFETY: the callback gets back the pointer to `search`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

struct ExportSearch<'a> {
    name: &'a CStr,
    is_wanted: &'a mut dyn FnMut(&libc::dl_phdr_info) -> bool,
    found: Option<usize>,
}

#[unsafe(link_section = ".text.asleep")]
extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: `search` is that of `search`, and the loader's `info` is valid during the call.
    let (search, info) = unsafe { (&mut *search.cast::<ExportSearch<'_>>(), &*info) };
    if (search.is_wanted)(info) {
        let dynamic = dynamic_section(info);
        search.found = dynamic.and_then(|at| find(info.dlpi_addr as usize, at, search.name));
    }
    c_int::from(search.found.is_some())
}

/// An object during a walk through all of them.
#[derive(Clone, Copy)]
pub(crate) struct Listed<'a>(&'a libc::dl_phdr_info);

impl Listed<'_> {
    pub(crate) fn is_ours(self) -> bool {
        is_ours(self.0)
    }

    pub(crate) fn base(self) -> usize {
        self.0.dlpi_addr as usize
    }

    pub(crate) fn holds(self, address: usize) -> bool {
        holds(self.0, address)
    }

    /// Where its dynamic section is.
    pub(crate) fn dynamic(self) -> Option<usize> {
        dynamic_section(self.0)
    }

    pub(crate) fn shows(self, name: &CStr) -> bool {
        self.dynamic().is_some_and(|dynamic| shows(self.base(), dynamic, name))
    }

    /// How much code it has.
    pub(crate) fn code_bytes(self) -> usize {
        let code = |header: &&libc::Elf64_Phdr| {
            header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0
        };
        headers(self.0).iter().filter(code).map(|header| header.p_memsz as usize).sum()
    }
}

/// Whether one of the loaded objects is wanted. None is closed meanwhile.
pub(crate) fn any(mut is_wanted: impl FnMut(Listed<'_>) -> bool) -> bool {
    let mut found = false;
    search(c"", |object| {
        found = found || is_wanted(Listed(object));
        false
    });
    found
}

/// Whether the object at this base, with this dynamic section, shows the function.
pub(crate) fn shows(base: usize, dynamic: usize, name: &CStr) -> bool {
    find(base, dynamic, name).is_some()
}

#[unsafe(link_section = ".text.asleep")]
fn find(base: usize, dynamic: usize, name: &CStr) -> Option<usize> {
    let dynamic = Dynamic::of(base, dynamic).filter(|dynamic| dynamic.hash != 0)?;
    find_in(&dynamic, name)
}

/// Whether an address lies in the object.
pub(super) fn holds(info: &libc::dl_phdr_info, address: usize) -> bool {
    headers(info).iter().any(|header| {
        let start = (info.dlpi_addr + header.p_vaddr) as usize;
        header.p_type == libc::PT_LOAD
            && (start..start + header.p_memsz as usize).contains(&address)
    })
}

fn dynamic_section(info: &libc::dl_phdr_info) -> Option<usize> {
    let dynamic = headers(info).iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
    Some((info.dlpi_addr + dynamic.p_vaddr) as usize)
}

fn headers(info: &libc::dl_phdr_info) -> &[libc::Elf64_Phdr] {
    if info.dlpi_phdr.is_null() {
        return &[];
    }
    // SAFETY: the loader gives `dlpi_phnum` program headers.
    unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) }
}

/// The address of a function of this name, of its default version.
#[unsafe(link_section = ".text.asleep")]
fn find_in(dynamic: &Dynamic, name: &CStr) -> Option<usize> {
    let hash = gnu_hash(name);
    // SAFETY: the table of a loaded object, as ELF's GNU extension lays it out: four words,
    // a filter of 64-bit words, the buckets, and the chains of symbols from the first
    // that is indexed on; a chain's last word is odd.
    unsafe {
        let head = dynamic.hash as *const u32;
        let [buckets, first, filters, shift] = *head.cast::<[u32; 4]>();
        let filter = head.add(4).cast::<u64>();
        if buckets == 0 || filters == 0 {
            return None;
        }
        let bits = 1_u64 << (hash % 64) | 1_u64 << ((hash >> (shift % 32)) % 64);
        if *filter.add((hash / 64 % filters) as usize) & bits != bits {
            return None;
        }
        let bucket = filter.add(filters as usize).cast::<u32>();
        let chain = bucket.add(buckets as usize);
        let mut symbol = *bucket.add((hash % buckets) as usize);
        while symbol >= first {
            let word = *chain.add((symbol - first) as usize);
            if word | 1 == hash | 1
                && let Some(address) = function(dynamic, symbol as usize, name)
            {
                return Some(address);
            }
            if word & 1 == 1 {
                return None;
            }
            symbol += 1;
        }
        None
    }
}

/// # Safety
/// The number is one of the object's symbol table.
unsafe fn function(dynamic: &Dynamic, number: usize, name: &CStr) -> Option<usize> {
    const FUNCTION: u8 = 2;
    const HIDDEN_VERSION: u16 = 0x8000;
    // SAFETY: the caller's contract; there is a version for each symbol, if for any.
    unsafe {
        let (symbol, own_name) = dynamic.symbol(number);
        let versions = dynamic.versions as *const u16;
        let is_default = versions.is_null() || *versions.add(number) & HIDDEN_VERSION == 0;
        let fits = symbol.st_info & 0xf == FUNCTION && symbol.st_shndx != 0 && own_name == name;
        (fits && is_default).then(|| dynamic.base + symbol.st_value as usize)
    }
}

fn gnu_hash(name: &CStr) -> u32 {
    let bytes = name.to_bytes().iter();
    bytes.fold(5381, |hash: u32, &byte| hash.wrapping_mul(33).wrapping_add(byte.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_libc_are_found_where_the_loader_finds_them() {
        for name in [c"getpid", c"pthread_create", c"qsort"] {
            // SAFETY: a look-up by a C string.
            let there = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
            assert_eq!((first(name), behind_us(name)), (Some(there), Some(there)), "{name:?}");
            // SAFETY: no test of this process opens libraries that show these functions.
            assert_eq!(unsafe { behind_us_for_debuggers(name) }, Some(there), "{name:?}");
        }
        assert_eq!((first(c"no such function"), behind_us(c"no such function")), (None, None));
    }
}
