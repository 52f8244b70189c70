//! The libraries in this process, as the dynamic loader lists them. Libraries are identified by
//! address; names are for the report only.

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::{exports, page_bytes};
use crate::{arch, c_library};

/// A loaded library or program.
#[derive(Clone, Debug)]
pub(crate) struct LoadedObject {
    pub(crate) base: usize,
    /// As the loader has it: a path, or nothing for the program itself.
    pub(crate) name: CString,
    pub(crate) dynamic: usize,
    /// Memory the loader made read-only after relocating; empty without it.
    pub(crate) relro: Range<usize>,
    segments: Vec<Segment>,
}

/// The loader's name of an object and its first address: another one may be there later. Not its
/// base, which is 0 for a program that is loaded where it was linked to be.
pub(crate) type Place = (CString, usize);

/// A part of the file in memory.
#[derive(Clone, Debug)]
struct Segment {
    memory: Range<usize>,
    offset: u64,
    is_code: bool,
    is_writable: bool,
}

impl LoadedObject {
    /// The object whose segments hold the address.
    pub(crate) fn containing(address: usize) -> Option<LoadedObject> {
        find(&mut |object| object.holds(address))
    }

    pub(crate) fn place(&self) -> Place {
        (self.name.clone(), self.bounds().map_or(0, |bounds| bounds.start))
    }

    pub(crate) fn holds(&self, address: usize) -> bool {
        self.segments.iter().any(|segment| segment.memory.contains(&address))
    }

    pub(crate) fn holds_code(&self, address: usize) -> bool {
        self.code().any(|segment| segment.contains(&address))
    }

    pub(crate) fn code(&self) -> impl Iterator<Item = &Range<usize>> {
        self.segments.iter().filter(|segment| segment.is_code).map(|segment| &segment.memory)
    }

    /// Where its variables are.
    pub(crate) fn writable(&self) -> impl Iterator<Item = Range<usize>> {
        let segments = self.segments.iter().filter(|segment| segment.is_writable);
        segments.map(|segment| segment.memory.clone())
    }

    /// From the first to the last address.
    pub(crate) fn bounds(&self) -> Option<Range<usize>> {
        let start = self.segments.iter().map(|segment| segment.memory.start).min()?;
        let end = self.segments.iter().map(|segment| segment.memory.end).max()?;
        Some(start..end)
    }

    /// Where in the file an address comes from.
    pub(crate) fn file_offset(&self, address: usize) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| segment.memory.contains(&address))?;
        Some(segment.offset + (address - segment.memory.start) as u64)
    }

    /// Whether it is libc, its loader, or the kernel's own library, which no program can do
    /// without, and which have nothing of ggml's.
    pub(crate) fn is_of_the_system(&self) -> bool {
        is_of_the_system(self.base, |address| self.holds(address))
    }

    /// The file it was loaded from. The loader tells where it has a whole path; else the
    /// kernel knows: the loader has no name for the program, which need not be what the
    /// kernel started either (a program may be run by naming the loader).
    pub(crate) fn file(&self) -> Option<PathBuf> {
        if self.name.to_bytes().starts_with(b"/") {
            return Some(PathBuf::from(OsStr::from_bytes(self.name.to_bytes())));
        }
        // SAFETY: a question to the system.
        if self.holds(unsafe { libc::getauxval(libc::AT_PHDR) } as usize) {
            return program_file();
        }
        let start = self.bounds()?.start;
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        maps.lines().find_map(|line| {
            let (from, rest) = line.split_once('-')?;
            let (to, _) = rest.split_once(' ')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            let path = line.find('/').map(|at| PathBuf::from(&line[at..]));
            (number(from)?..number(to)?).contains(&start).then_some(path)?
        })
    }
}

/// The same for an object of which only its base and the addresses in it are known.
pub(crate) fn is_of_the_system(base: usize, holds: impl FnOnce(usize) -> bool) -> bool {
    // SAFETY: questions to the system.
    let [loader, vdso] =
        [libc::AT_BASE, libc::AT_SYSINFO_EHDR].map(|it| unsafe { libc::getauxval(it) });
    let [loader, vdso] = [loader as usize, vdso as usize];
    holds(c_library::address_inside())
        || (loader != 0 && base == loader)
        || (vdso != 0 && base == vdso)
}

/// The file that the kernel started. Without /proc it is known by the path that it was started with, if
/// that is absolute: the program may have changed its directory since.
fn program_file() -> Option<PathBuf> {
    let known = PathBuf::from("/proc/self/exe");
    if known.exists() {
        return Some(known);
    }
    // SAFETY: a question to the system, whose answer is a C string that stays, or null.
    let started = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const c_char;
    // SAFETY: as above.
    let path = (!started.is_null()).then(|| unsafe { CStr::from_ptr(started) })?;
    Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
        .filter(|path| path.is_absolute() && path.exists())
}

/// Everything that is loaded now. Gathered first: what is done with each may need
/// the loader, which is locked during its own walk.
pub(crate) fn all() -> Vec<LoadedObject> {
    let mut objects = Vec::new();
    find(&mut |object| {
        objects.push(object.clone());
        false
    });
    objects
}

/// Whether an address lies in this library. By what the linker knows: the loader need not be
/// asked, and nothing is kept.
pub(crate) fn is_ours(address: usize) -> bool {
    arch::own_bounds().contains(&address)
}

/// The file this library was loaded from.
pub(crate) fn own_path() -> PathBuf {
    let object = LoadedObject::containing(own_path as *const () as usize);
    let name = object.map(|object| OsString::from_vec(object.name.into_bytes()));
    let path = PathBuf::from(name.unwrap_or_default());
    path.canonicalize().unwrap_or(path)
}

/// Nothing of this name is loaded there any more.
pub(crate) fn is_gone((name, start): &Place) -> bool {
    LoadedObject::containing(*start).is_none_or(|now| now.name != *name)
}

/// Whether calls of `dlclose` arrive at our stand-in: 0 while that is not known, 1 if they
/// do, 2 if they do not.
static CLOSING_IS_SEEN: AtomicU8 = AtomicU8::new(0);
/// How many calls of `dlclose` arrived.
static CLOSINGS: AtomicU64 = AtomicU64::new(0);

#[cold]
fn learn_who_closes() {
    let ours = exports::first(c"dlclose").is_some_and(is_ours);
    CLOSING_IS_SEEN.store(if ours { 1 } else { 2 }, Ordering::Release);
}

pub(crate) fn note_closing() {
    CLOSINGS.fetch_add(1, Ordering::AcqRel);
}

/// A count that changes whenever an object was unloaded, and its addresses may mean something else.
#[inline(always)]
pub(crate) fn unloads() -> u64 {
    match CLOSING_IS_SEEN.load(Ordering::Acquire) {
        1 => CLOSINGS.load(Ordering::Acquire),
        _ => unloads_by_asking(),
    }
}

#[cold]
fn unloads_by_asking() -> u64 {
    if CLOSING_IS_SEEN.load(Ordering::Acquire) == 0 {
        learn_who_closes();
    }
    match CLOSING_IS_SEEN.load(Ordering::Acquire) {
        1 => CLOSINGS.load(Ordering::Acquire),
        _ => changes().1,
    }
}

/// How many objects the loader has loaded and unloaded so far.
#[unsafe(link_section = ".text.asleep")]
pub(crate) fn changes() -> (u64, u64) {
    #[unsafe(link_section = ".text.asleep")]
    extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        // SAFETY: the loader hands a valid `info`, and `out` are the numbers below.
        unsafe { *out.cast::<(u64, u64)>() = ((*info).dlpi_adds, (*info).dlpi_subs) };
        1
    }
    let mut counts = (0_u64, 0_u64);
    // SAFETY: the callback matches and only writes `counts`.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut counts).cast()) };
    counts
}

/// The paths of everything loaded, as the loader names them.
pub(crate) fn names() -> Vec<CString> {
    let mut names = Vec::new();
    find(&mut |object| {
        names.push(object.name.clone());
        false
    });
    names
}

struct ObjectSearch<'a> {
    wanted: &'a mut dyn FnMut(&LoadedObject) -> bool,
    is_first: bool,
    found: Option<LoadedObject>,
}

fn find(wanted: &mut dyn FnMut(&LoadedObject) -> bool) -> Option<LoadedObject> {
    let mut search = ObjectSearch { wanted, is_first: true, found: None };
    // SAFETY: the callback gets back the pointer to `search`, which outlives
    // the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: `data` is the `ObjectSearch` handed to `dl_iterate_phdr` by `find`, and
    // the loader's `info` is valid during the callback.
    let (search, info) = unsafe { (&mut *data.cast::<ObjectSearch<'_>>(), &*info) };
    let mut object = describe(info);
    if std::mem::take(&mut search.is_first)
        && c_library::begins_with_program(object.name.to_bytes())
    {
        object.name = CString::default();
    }
    if (search.wanted)(&object) {
        search.found = Some(object);
        return 1;
    }
    0
}

fn describe(info: &libc::dl_phdr_info) -> LoadedObject {
    let base = info.dlpi_addr as usize;
    let name = if info.dlpi_name.is_null() {
        CString::default()
    } else {
        // SAFETY: the loader's name is a C string that lives during the callback.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_owned()
    };
    let mut object = LoadedObject { base, name, dynamic: 0, relro: 0..0, segments: Vec::new() };
    if info.dlpi_phdr.is_null() {
        return object;
    }
    // SAFETY: the loader gives `dlpi_phnum` program headers.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    for header in headers {
        let start = base + header.p_vaddr as usize;
        let range = start..start + header.p_memsz as usize;
        match header.p_type {
            libc::PT_LOAD => object.segments.push(Segment {
                memory: range,
                offset: header.p_offset,
                is_code: header.p_flags & libc::PF_X != 0,
                is_writable: header.p_flags & libc::PF_W != 0,
            }),
            libc::PT_DYNAMIC => object.dynamic = start,
            libc::PT_GNU_RELRO => object.relro = whole_pages(range),
            _ => {}
        }
    }
    object
}

/// What the loader really protects: from the page the segment starts in to the
/// last page it fills. The page it ends in holds ordinary data as well.
fn whole_pages(range: Range<usize>) -> Range<usize> {
    let page = page_bytes();
    range.start & !(page - 1)..range.end & !(page - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_object_of_a_function_of_libc() {
        let object = LoadedObject::containing(libc::getpid as *const () as usize);
        assert!(object.is_some_and(|object| object.dynamic != 0));
    }
}
