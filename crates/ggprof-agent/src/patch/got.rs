//! The slots through which a library calls functions by name, including its own exported ones:
//! `JUMP_SLOT` for calls through the PLT, `GLOB_DAT` for `-fno-plt` builds. Slots in memory that
//! the loader made read-only are made writable for the one store, and read-only again.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::dynamic::Dynamic;
use super::loaded_object::LoadedObject;
use super::page_bytes;
use super::scope::Scope;
use crate::lock::{self, HeldAtFork, Ranked, rank};
use crate::{arch, c_library};

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
        c_library::forget_loader_error(global == 0);
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

    /// Binds a slot that is not bound yet, unless another thread has meanwhile put a hook in.
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

/// Held while a page is writable, so that no other thread makes it read-only under the writer.
static OPENED: Ranked<{ rank::OPEN_PAGE }, ()> = Ranked::new(());

/// For holding it during a fork.
pub(crate) fn fork_lock() -> &'static dyn HeldAtFork {
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
    let Some(dynamic) = Dynamic::of(object.base, object.dynamic) else { return };
    for table in [dynamic.jump_slots, dynamic.relocations] {
        // SAFETY: a table of the object, which its user keeps loaded.
        for entry in unsafe { table.relocations() } {
            if arch::is_function_slot(entry.r_info as u32) {
                visit(&slot(&dynamic, entry));
            }
        }
    }
}

fn slot<'a>(dynamic: &Dynamic, entry: &libc::Elf64_Rela) -> Slot<'a> {
    // SAFETY: the relocation names an entry of the symbol table.
    let (symbol, name) = unsafe { dynamic.symbol((entry.r_info >> 32) as usize) };
    let is_defined = symbol.st_shndx != 0 && symbol.st_value != 0;
    let own_definition = if is_defined { dynamic.base + symbol.st_value as usize } else { 0 };
    Slot { name, address: dynamic.base + entry.r_offset as usize, own_definition }
}

/// Binds the slots of these names, as their first calls would. Asks the loader.
pub(crate) fn bind(object: &LoadedObject, wanted: impl Fn(&CStr) -> bool) {
    for_each(object, |slot| {
        if wanted(slot.name) {
            slot.bind(object);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libc_is_called_through_slots_of_this_program() {
        let here = LoadedObject::containing(fork_lock as *const () as usize);
        let mut names = Vec::new();
        for_each(&here.expect("the test's own code is loaded"), |slot| {
            names.push(slot.name.to_owned());
        });
        assert!(names.iter().any(|name| name.to_bytes().starts_with(b"mmap")), "{names:?}");
    }
}
