//! The slots through which a library calls functions by name, including its own exported ones:
//! `JUMP_SLOT` for calls through the PLT, `GLOB_DAT` for `-fno-plt` builds. Slots in memory that
//! the loader made read-only are made writable for the one store, and read-only again.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::dynamic::Dynamic;
use super::loaded_object::LoadedObject;
use super::page_bytes;
use super::scope::Scope;
use crate::fault::fault_point;
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

    /// What the slot leads to. The function of one that is not yet bound is looked up as the loader would:
    /// in the global scope first, unless the object's other slots show that it comes first itself.
    pub(crate) fn leads_to(&self, object: &LoadedObject) -> usize {
        if self.is_bound(object) {
            return self.value();
        }
        match self.found(object) {
            Found::One(function) => function,
            Found::Two { global, .. } if !sees_its_own_first(object).unwrap_or(false) => global,
            Found::Two { own, .. } => own,
        }
    }

    /// What the loader finds, in the global scope and in that of the object.
    fn found(&self, object: &LoadedObject) -> Found {
        lock::before_asking_the_loader();
        // SAFETY: a look-up by a C string.
        let global = unsafe { libc::dlsym(libc::RTLD_DEFAULT, self.name.as_ptr()) as usize };
        c_library::forget_loader_error(global == 0);
        let own = Scope::of(&object.name).map_or(0, |scope| scope.find(self.name));
        match (global, own) {
            (0, 0) => Found::One(self.own_definition),
            (0, one) | (one, 0) => Found::One(one),
            (global, own) if global == own => Found::One(own),
            (global, own) => Found::Two { global, own },
        }
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
        if self.is_bound(object) {
            return;
        }
        let function = match self.found(object) {
            Found::One(function) => function,
            // What is bound stays bound, so it must be what the loader would bind.
            Found::Two { global, own } => match sees_its_own_first(object) {
                Some(its_own) => {
                    if its_own {
                        own
                    } else {
                        global
                    }
                }
                None => return,
            },
        };
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
        let Some(_opened) = OpenPage::of(self.address) else { return false };
        fault_point!();
        write(self.word());
        true
    }
}

/// A page that can be written to until this is dropped, even by a fault.
struct OpenPage(usize);

impl OpenPage {
    fn of(address: usize) -> Option<OpenPage> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        protect(address, access).then(|| OpenPage(address))
    }
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        protect(self.0, libc::PROT_READ);
    }
}

/// A function, or two of the same name.
#[derive(Debug)]
enum Found {
    One(usize),
    Two { global: usize, own: usize },
}

/// Whether an object that was opened with `RTLD_DEEPBIND` sees itself and what it needs before all others. The
/// loader does not tell; but a slot that is bound shows it, if there are two functions of its name.
fn sees_its_own_first(object: &LoadedObject) -> Option<bool> {
    let mut shown = None;
    for_each(object, |slot| {
        if shown.is_none()
            && slot.is_bound(object)
            && let Found::Two { global, own } = slot.found(object)
        {
            let value = slot.value();
            shown = (value == own || value == global).then_some(value == own);
        }
    });
    shown
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
    use crate::c_library::only_in_glibc;

    only_in_glibc! {
        /// Three libraries, the last of which calls the second's functions, and is opened while the first one
        /// shows others of the same names to all.
        #[test]
        fn a_library_that_sees_its_own_functions_first_keeps_them() {
            let directory = std::env::temp_dir().join(format!("ggprof-scopes-{}", std::process::id()));
            std::fs::create_dir_all(&directory).expect("there is room");
            let made = |name: &str, text: &str, needs: &[&str]| {
                let file = directory.join(name);
                std::fs::write(directory.join("source.c"), text).expect("there is room");
                let mut compile = std::process::Command::new("gcc");
                compile.args(["-shared", "-fPIC", "-Wl,-z,lazy", "-Wl,-rpath,$ORIGIN", "-L."]);
                compile.arg("source.c").args(needs).arg("-o").arg(&file);
                let compiled = compile.current_dir(&directory).status();
                assert!(compiled.expect("there is a compiler").success());
                std::ffi::CString::new(file.into_os_string().into_encoded_bytes()).expect("no zero byte")
            };
            let open = |file: &CStr, how| {
                // SAFETY: a library of ours without constructors.
                let opened = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | how) };
                assert!(!opened.is_null());
                opened
            };
            let two =
                |number: u32| format!("int one() {{ return {number}; }} int other() {{ return 1; }}");
            open(&made("libfirst.so", &two(1), &[]), libc::RTLD_GLOBAL);
            made("libsecond.so", &two(2), &[]);
            let text = "int one(); int other(); int a() { return one(); } int b() { return other(); }";
            let caller = made("libcaller.so", text, &["-lsecond"]);
            let opened = open(&caller, libc::RTLD_DEEPBIND);
            let call = |name: &CStr| {
                // SAFETY: functions of the source above.
                unsafe {
                    let found = libc::dlsym(opened, name.as_ptr());
                    (found as usize, std::mem::transmute::<*mut std::ffi::c_void, fn() -> i32>(found))
                }
            };
            let object = LoadedObject::containing(call(c"a").0).expect("it is loaded");
            let stub = |name: &CStr| {
                let mut is_stub = false;
                for_each(&object, |slot| is_stub |= slot.name == name && !slot.is_bound(&object));
                is_stub
            };
            bind(&object, |name| name == c"one");
            assert!(stub(c"one"), "nothing shows whose functions it sees first");
            assert_eq!(call(c"b").1(), 1);
            bind(&object, |name| name == c"one");
            assert!(!stub(c"one"), "its other slot shows it");
            assert_eq!(call(c"a").1(), 2);
            _ = std::fs::remove_dir_all(&directory);
        }
    }

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
