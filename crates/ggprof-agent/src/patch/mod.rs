//! Changes libraries that are already loaded: finds a library, its slots and functions, and writes
//! a slot or an entry. `hooks` decides what to write.

pub(crate) mod direct_calls;
mod dynamic;
pub(crate) mod exports;
pub(crate) mod got;
pub(crate) mod inline;
pub(crate) mod linked_in;
pub(crate) mod load_order;
pub(crate) mod loaded_object;
pub(crate) mod loader;
mod near_page;
pub(crate) mod scope;
pub(crate) mod standing;
pub(crate) mod symbols;

pub(crate) fn page_bytes() -> usize {
    // SAFETY: a question to the system.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}
