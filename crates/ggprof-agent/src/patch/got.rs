//! The slots through which a library calls functions by name, including its own exported ones:
//! `JUMP_SLOT` for calls through the PLT, `GLOB_DAT` for `-fno-plt` builds. Slots in memory that
//! the loader made read-only are made writable for the one store, and read-only again.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::loaded_object::LoadedObject;
use super::page_bytes;
use super::scope::Scope;
use crate::arch;
use crate::lock::{self, HeldAtFork, Ranked, rank};

/// A slot and what the library's own symbol table says of its name.
#[derive(Debug)]
pub(crate) struct Slot<'a> {
    pub(crate) name: &'a CStr,
    pub(crate) address: usize,
    /// Where the library itself defines the symbol; 0 when it imports it.
    pub(crate) own_definition: usize,
}

impl Slot<'_> {
    pub(crate) fn value(&self) -> usize {
        self.word().load(Ordering::Relaxed)
    }

    /// Whether the slot leads to its function: at first it may lead back into the library's
    /// own stubs, which bind it when they are called, and so would undo a hook.
    pub(crate) fn is_bound(&self, object: &LoadedObject) -> bool {
        let value = self.value();
        value == self.own_definition || !object.holds(value)
    }

    /// What the slot leads to. The function of one that is not yet bound is looked up as the
    /// loader would, in the global scope first, then in the scope of a library that was
    /// opened for itself.
    pub(crate) fn leads_to(&self, object: &LoadedObject) -> usize {
        if self.is_bound(object) {
            return self.value();
        }
        lock::before_asking_the_loader();
        // SAFETY: a look-up by a C string.
        let global = unsafe { libc::dlsym(libc::RTLD_DEFAULT, self.name.as_ptr()) as usize };
        if global != 0 {
            return global;
        }
        let local = Scope::of(&object.name).map_or(0, |scope| scope.find(self.name));
        if local != 0 { local } else { self.own_definition }
    }

    fn word(&self) -> &AtomicUsize {
        // SAFETY: the library's relocation names this word, the loader has
        // relocated it, and the library is loaded (`for_each` holds no slot
        // longer than its walk).
        unsafe { AtomicUsize::from_ptr(self.address as *mut usize) }
    }

    /// Puts another function in. False when the page cannot be opened.
    pub(crate) fn replace(&self, object: &LoadedObject, function: usize) -> bool {
        self.write(object, |word| word.store(function, Ordering::Release))
    }

    /// Binds a slot that is not yet, unless another thread was quicker, and put a hook in.
    fn bind(&self, object: &LoadedObject) {
        let stub = self.value();
        let function = self.leads_to(object);
        if function != 0 && function != stub {
            self.write(object, |word| {
                let _ = word.compare_exchange(stub, function, Ordering::AcqRel, Ordering::Relaxed);
            });
        }
    }

    fn write(&self, object: &LoadedObject, write: impl FnOnce(&AtomicUsize)) -> bool {
        if !object.relro.contains(&self.address) {
            write(self.word());
            return true;
        }
        let _alone = OPENED.lock();
        let opened = protect(self.address, libc::PROT_READ | libc::PROT_WRITE);
        if opened {
            write(self.word());
            protect(self.address, libc::PROT_READ);
        }
        opened
    }
}

/// Who closes a page must not close it for another thread that writes to it.
static OPENED: Ranked<{ rank::OPEN_PAGE }, ()> = Ranked::new(());

/// For holding it during a fork.
pub(crate) fn lock_of_all() -> &'static dyn HeldAtFork {
    &OPENED
}

fn protect(address: usize, protection: libc::c_int) -> bool {
    let page = page_bytes();
    let start = address & !(page - 1);
    // SAFETY: the page belongs to a loaded library's RELRO segment, which holds
    // no code; making it writable for a moment takes nothing from anyone.
    unsafe { libc::mprotect(start as *mut libc::c_void, page, protection) == 0 }
}

/// Visits every function slot of the library.
pub(crate) fn for_each(object: &LoadedObject, mut visit: impl FnMut(&Slot<'_>)) {
    let Some(tables) = Tables::of(object) else { return };
    for (table, bytes) in
        [(tables.jump_slots, tables.jump_slot_bytes), (tables.rela, tables.rela_bytes)]
    {
        for i in 0..bytes / size_of::<libc::Elf64_Rela>() {
            // SAFETY: the dynamic section gives the table and its length, and
            // the loader keeps both mapped while the library is loaded.
            let entry = unsafe { &*(table as *const libc::Elf64_Rela).add(i) };
            let kind = entry.r_info as u32;
            if arch::is_function_slot(kind) {
                let symbol = (entry.r_info >> 32) as usize;
                visit(&tables.slot(object.base, symbol, entry.r_offset as usize));
            }
        }
    }
}

/// Binds the slots of these names, as their first calls would. Asks the loader.
pub(crate) fn bind(object: &LoadedObject, wanted: impl Fn(&CStr) -> bool) {
    for_each(object, |slot| {
        if wanted(slot.name) {
            slot.bind(object);
        }
    });
}

#[derive(Default)]
struct Tables {
    symbols: usize,
    strings: usize,
    jump_slots: usize,
    jump_slot_bytes: usize,
    /// Without those at its start that concern no symbol: a program has many of them.
    rela: usize,
    rela_bytes: usize,
}

impl Tables {
    fn of(object: &LoadedObject) -> Option<Tables> {
        const DT_PLTRELSZ: i64 = 2;
        const DT_STRTAB: i64 = 5;
        const DT_SYMTAB: i64 = 6;
        const DT_RELA: i64 = 7;
        const DT_RELASZ: i64 = 8;
        const DT_JMPREL: i64 = 23;
        const DT_RELACOUNT: i64 = 0x6fff_fff9;
        if object.dynamic == 0 {
            return None;
        }
        // glibc writes absolute addresses into the section, musl leaves offsets.
        let at = |value: usize| if value < object.base { value + object.base } else { value };
        let mut tables = Tables::default();
        let mut without_symbol = 0;
        let mut entry = object.dynamic as *const [i64; 2];
        loop {
            // SAFETY: the dynamic section is an array ended by a zero tag.
            let [tag, value] = unsafe { *entry };
            let value = value as usize;
            match tag {
                0 => break,
                DT_STRTAB => tables.strings = at(value),
                DT_SYMTAB => tables.symbols = at(value),
                DT_JMPREL => tables.jump_slots = at(value),
                DT_PLTRELSZ => tables.jump_slot_bytes = value,
                DT_RELA => tables.rela = at(value),
                DT_RELASZ => tables.rela_bytes = value,
                DT_RELACOUNT => without_symbol = value * size_of::<libc::Elf64_Rela>(),
                _ => {}
            }
            // SAFETY: the end was not reached yet.
            entry = unsafe { entry.add(1) };
        }
        let without_symbol = without_symbol.min(tables.rela_bytes);
        tables.rela += without_symbol;
        tables.rela_bytes -= without_symbol;
        (tables.symbols != 0 && tables.strings != 0).then_some(tables)
    }

    fn slot(&self, base: usize, symbol: usize, offset: usize) -> Slot<'static> {
        // SAFETY: the relocation names an entry of the symbol table, whose name
        // is a C string in the string table; both stay mapped.
        let (symbol, name) = unsafe {
            let symbol = &*(self.symbols as *const libc::Elf64_Sym).add(symbol);
            let name = (self.strings + symbol.st_name as usize) as *const libc::c_char;
            (symbol, CStr::from_ptr(name))
        };
        let defined = symbol.st_shndx != 0 && symbol.st_value != 0;
        let own_definition = if defined { base + symbol.st_value as usize } else { 0 };
        Slot { name, address: base + offset, own_definition }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libc_is_called_through_slots_of_this_program() {
        let here = LoadedObject::containing(Tables::of as *const () as usize);
        let mut names = Vec::new();
        for_each(&here.expect("the test's own code is loaded"), |slot| {
            names.push(slot.name.to_owned());
        });
        assert!(names.iter().any(|name| name.to_bytes().starts_with(b"mmap")), "{names:?}");
    }
}
