//! Devices by the loader's key for them. Every command looks here, so look-ups take no lock. There
//! are as many entries as devices were alive at once: one or two.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A mark that is not a key of the loader, until the value is in place.
const BEING_MADE: usize = 1;

/// A list that only grows. What was removed stays until its place is needed for another: a
/// program that breaks Vulkan's rules may still be inside a call about it.
#[derive(Debug)]
pub(crate) struct Registry<T: 'static> {
    first: AtomicPtr<RegistryEntry<T>>,
}

#[derive(Debug)]
struct RegistryEntry<T> {
    /// 0: free.
    key: AtomicUsize,
    /// From `Box::into_raw`.
    value: AtomicPtr<T>,
    next: *mut RegistryEntry<T>,
}

impl<T> Registry<T> {
    pub(crate) const fn new() -> Self {
        Registry { first: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// # Safety
    /// The reference is used within a call about the object whose key this is, or within the
    /// one that makes it: Vulkan lets none of these go on when it is destroyed.
    #[inline]
    pub(crate) unsafe fn find<'a>(&self, key: usize) -> Option<&'a T> {
        let entry = self.entries().find(|entry| entry.key.load(Ordering::Acquire) == key)?;
        // SAFETY: a box's, which is dropped when another object was made in its place: by the
        // caller's contract that is later.
        unsafe { entry.value.load(Ordering::Acquire).as_ref() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries().all(|entry| entry.key.load(Ordering::Acquire) == 0)
    }

    /// The loader may reuse the address of a table: an older object with this key is removed.
    pub(crate) fn put(&self, key: usize, value: Box<T>) {
        self.remove(key);
        let value = Box::into_raw(value);
        let free = self.entries().find(|entry| {
            entry.key.compare_exchange(0, BEING_MADE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        });
        match free {
            Some(entry) => {
                let before = entry.value.swap(value, Ordering::AcqRel);
                entry.key.store(key, Ordering::Release);
                // SAFETY: a box's, of an object that was destroyed; see `find`.
                drop(unsafe { Box::from_raw(before) });
            }
            None => self.push(key, value),
        }
    }

    pub(crate) fn remove(&self, key: usize) {
        if let Some(entry) = self.entries().find(|entry| entry.key.load(Ordering::Acquire) == key) {
            entry.key.store(0, Ordering::Release);
        }
    }

    fn push(&self, key: usize, value: *mut T) {
        let next = self.first.load(Ordering::Acquire);
        let entry =
            RegistryEntry { key: AtomicUsize::new(key), value: AtomicPtr::new(value), next };
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

    fn entries(&self) -> impl Iterator<Item = &'static RegistryEntry<T>> {
        let mut at = self.first.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            // SAFETY: entries are leaked, and complete before they are in the list.
            let entry: &'static RegistryEntry<T> = unsafe { at.as_ref() }?;
            at = entry.next;
            Some(entry)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn find<T>(registry: &Registry<T>, key: usize) -> Option<&'static T> {
        // SAFETY: the tests look only at what they have not removed.
        unsafe { registry.find(key) }
    }

    #[test]
    fn a_key_used_again_means_the_new_one() {
        static REGISTRY: Registry<u32> = Registry::new();
        REGISTRY.put(0x10, Box::new(1));
        REGISTRY.put(0x20, Box::new(2));
        REGISTRY.put(0x10, Box::new(3));
        assert_eq!(find(&REGISTRY, 0x10), Some(&3));
        assert_eq!(find(&REGISTRY, 0x20), Some(&2));
        REGISTRY.remove(0x10);
        assert_eq!(find(&REGISTRY, 0x10), None);
        REGISTRY.remove(0x20);
        assert!(REGISTRY.is_empty());
    }

    #[test]
    fn no_more_is_kept_than_was_alive_at_once() {
        static REGISTRY: Registry<Arc<()>> = Registry::new();
        let counted = Arc::new(());
        for key in (16..1600).step_by(16) {
            REGISTRY.put(key, Box::new(Arc::clone(&counted)));
            REGISTRY.put(key + 1, Box::new(Arc::clone(&counted)));
            REGISTRY.remove(key);
            REGISTRY.remove(key + 1);
        }
        assert_eq!(Arc::strong_count(&counted), 3);
    }
}
