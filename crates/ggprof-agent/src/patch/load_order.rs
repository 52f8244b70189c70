//! Whether this library was loaded with the program, or opened while the program runs.
//!
//! Before `main`, no other code reads the environment, so it may be changed, and no thread is
//! inside the libraries that are looked at. Later both may be in use by others, and the agent does
//! nothing on its own. It is late if the Vulkan loader opens it as a layer in a program that was
//! started without it, or if a program opens libggml-profiler.
//!
//! The loader does not answer this question, and other signs mislead. Functions of a library opened
//! with `RTLD_GLOBAL` are found like those of a preloaded one; `LD_PRELOAD` is not the only way to
//! preload; and a program with a single thread may still hold pointers into its environment. But
//! the loader's list is in the order of loading: the program, what is preloaded, what these need,
//! and then what was opened, one after another. So every library before libc, which every program
//! needs, was loaded with the program, and so was every library before one that these need.

use std::ffi::{CStr, c_int, c_void};

use super::dynamic::{self, Dynamic};
use super::exports;
use super::loaded_object::{self, LoadedObject};
use crate::c_library;

pub(crate) fn came_with_program() -> bool {
    stands_before_libc() || is_needed()
}

/// Whether the agent comes before libc in the list, as preloaded libraries do. Quick, because every
/// process asks.
fn stands_before_libc() -> bool {
    #[unsafe(link_section = ".text.asleep")]
    extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        // SAFETY: the loader hands a valid `info`, and `out` are the words below.
        let (info, out) = unsafe { (&*info, &mut *out.cast::<[bool; 2]>()) };
        let [is_past_first, stands_before] = out;
        // In a namespace of its own (`dlmopen`) there is no program.
        if !std::mem::replace(is_past_first, true) {
            let has_name = !info.dlpi_name.is_null();
            // SAFETY: the loader's name is a C string.
            let name = has_name.then(|| unsafe { CStr::from_ptr(info.dlpi_name) });
            if !name.is_some_and(|name| c_library::begins_with_program(name.to_bytes())) {
                return 1;
            }
        }
        *stands_before = exports::holds(info, stands_before_libc as *const () as usize);
        c_int::from(*stands_before || exports::holds(info, c_library::address_inside()))
    }
    let mut found = [false; 2];
    // SAFETY: the callback matches, and only writes `found`.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    found[1]
}

fn is_needed() -> bool {
    let objects = loaded_object::all();
    // In a namespace of its own (`dlmopen`) there is no program.
    if !objects.first().is_some_and(|first| first.name.is_empty()) {
        return false;
    }
    let place = |address: usize| objects.iter().position(|one| one.holds(address));
    let ours = place(is_needed as *const () as usize);
    let libc = place(c_library::address_inside());
    let (Some(ours), Some(libc)) = (ours, libc) else { return false };
    ours <= last_needed(&objects, libc)
}

/// The place of the last object that came with the program, given one that did.
fn last_needed(objects: &[LoadedObject], known: usize) -> usize {
    let mut last = known;
    let mut at = 0;
    while let Some(object) = objects.get(at).filter(|_| at <= last) {
        for name in names(object, dynamic::NEEDED) {
            let place = objects.iter().position(|one| is_called(one, name));
            last = last.max(place.unwrap_or(0));
        }
        at += 1;
    }
    last
}

/// Whether this is the object that a library's list of what it needs means by a name.
fn is_called(object: &LoadedObject, name: &CStr) -> bool {
    let path = object.name.to_bytes();
    let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    path == name.to_bytes()
        || file == name.to_bytes()
        || names(object, dynamic::OWN_NAME).any(|own| own == name)
}

/// The names under a tag of the object's dynamic section.
fn names(object: &LoadedObject, tag: i64) -> impl Iterator<Item = &CStr> {
    let dynamic = Dynamic::of(object.base, object.dynamic);
    // SAFETY: who has the object keeps it loaded.
    dynamic.into_iter().flat_map(move |dynamic| unsafe { dynamic.names(tag) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_comes_with_itself() {
        assert!(came_with_program());
    }

    #[test]
    fn what_is_opened_stands_behind_all_that_is_needed() {
        let is_loaded = || loaded_object::all().iter().any(|one| is_called(one, c"libanl.so.1"));
        assert!(!is_loaded(), "another library for this test is needed");
        // SAFETY: a library of libc that no other code needs.
        assert!(!unsafe { libc::dlopen(c"libanl.so.1".as_ptr(), libc::RTLD_NOW) }.is_null());
        assert!(is_loaded());
        let objects = loaded_object::all();
        let place = |name: &CStr| objects.iter().position(|one| is_called(one, name)).unwrap();
        let last = last_needed(&objects, 0);
        assert!((place(c"libc.so.6")..place(c"libanl.so.1")).contains(&last), "{last}");
    }
}
