//! Objects of ours by the loader's key for them. Found without a lock, because every
//! command looks here; there are as many entries as devices alive at once, one or two.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A mark that is nobody's key, until the value is in place.
const BEING_MADE: usize = 1;

/// A list that only grows. What it refers to is never freed: a command may be under way
/// on another thread.
#[derive(Debug)]
pub(crate) struct Registry<T: 'static> {
    first: AtomicPtr<Entry<T>>,
}

#[derive(Debug)]
struct Entry<T> {
    /// 0: free.
    key: AtomicUsize,
    value: AtomicPtr<T>,
    next: *mut Entry<T>,
}

impl<T> Registry<T> {
    pub(crate) const fn new() -> Self {
        Registry { first: AtomicPtr::new(std::ptr::null_mut()) }
    }

    #[inline]
    pub(crate) fn find(&self, key: usize) -> Option<&'static T> {
        let entry = self.entries().find(|entry| entry.key.load(Ordering::Acquire) == key)?;
        // SAFETY: only leaked values are stored.
        unsafe { entry.value.load(Ordering::Acquire).as_ref() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries().all(|entry| entry.key.load(Ordering::Acquire) == 0)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &'static T> {
        let taken = self.entries().filter(|entry| entry.key.load(Ordering::Acquire) > BEING_MADE);
        // SAFETY: only leaked values are stored.
        taken.filter_map(|entry| unsafe { entry.value.load(Ordering::Acquire).as_ref() })
    }

    /// The loader may use the address of a table again: what had the key loses it.
    pub(crate) fn put(&self, key: usize, value: Box<T>) -> &'static T {
        self.remove(key);
        let value = Box::leak(value);
        let pointer = std::ptr::from_mut(value);
        let free = self.entries().find(|entry| {
            entry.key.compare_exchange(0, BEING_MADE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        });
        match free {
            Some(entry) => {
                entry.value.store(pointer, Ordering::Release);
                entry.key.store(key, Ordering::Release);
            }
            None => self.push(key, pointer),
        }
        // SAFETY: leaked above; only shared references to it exist.
        unsafe { &*pointer }
    }

    pub(crate) fn remove(&self, key: usize) {
        if let Some(entry) = self.entries().find(|entry| entry.key.load(Ordering::Acquire) == key) {
            entry.key.store(0, Ordering::Release);
        }
    }

    fn push(&self, key: usize, value: *mut T) {
        let next = self.first.load(Ordering::Acquire);
        let entry = Entry { key: AtomicUsize::new(key), value: AtomicPtr::new(value), next };
        let entry = Box::leak(Box::new(entry));
        loop {
            let seen = entry.next;
            let mine = std::ptr::from_mut(entry);
            match self.first.compare_exchange(seen, mine, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => entry.next = now,
            }
        }
    }

    fn entries(&self) -> impl Iterator<Item = &'static Entry<T>> {
        let mut at = self.first.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            // SAFETY: entries are leaked, and complete before they are in the list.
            let entry: &'static Entry<T> = unsafe { at.as_ref() }?;
            at = entry.next;
            Some(entry)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_used_again_means_the_new_one() {
        static REGISTRY: Registry<u32> = Registry::new();
        REGISTRY.put(0x10, Box::new(1));
        REGISTRY.put(0x20, Box::new(2));
        REGISTRY.put(0x10, Box::new(3));
        assert_eq!(REGISTRY.find(0x10), Some(&3));
        assert_eq!(REGISTRY.find(0x20), Some(&2));
        REGISTRY.remove(0x10);
        assert_eq!(REGISTRY.find(0x10), None);
    }
}
