//! The agent's objects by the loader's key for them, for rare look-ups: a short list behind a lock
//! that is held only while the list is read or changed.

use std::sync::Arc;

use super::ranks;
use crate::lock::{HeldAtFork, Ranked};

#[derive(Debug)]
pub(crate) struct Keyed<T: 'static> {
    known: Ranked<{ ranks::VULKAN_OBJECTS }, Vec<(usize, Arc<T>)>>,
}

impl<T: 'static> Keyed<T> {
    pub(crate) const fn new() -> Self {
        Keyed { known: Ranked::new(Vec::new()) }
    }

    /// For holding it during a fork.
    pub(crate) fn fork_lock(&'static self) -> &'static dyn HeldAtFork
    where
        T: Send + Sync,
    {
        &self.known
    }

    pub(crate) fn find(&self, key: usize) -> Option<Arc<T>> {
        self.known.lock().iter().find(|(own, _)| *own == key).map(|(_, value)| Arc::clone(value))
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.known.lock().iter().map(|(_, value)| Arc::clone(value)).collect()
    }

    /// The loader may reuse an address: an older object with this key is removed.
    pub(crate) fn put(&self, key: usize, value: Arc<T>) {
        let mut known = self.known.lock();
        known.retain(|(own, _)| *own != key);
        known.push((key, value));
    }

    pub(crate) fn remove(&self, key: usize) -> Option<Arc<T>> {
        let mut known = self.known.lock();
        let place = known.iter().position(|(own, _)| *own == key)?;
        Some(known.swap_remove(place).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_used_again_means_the_new_one() {
        let keyed = Keyed::new();
        for (key, value) in [(0x10, 1), (0x20, 2), (0x10, 3)] {
            keyed.put(key, Arc::new(value));
        }
        assert_eq!(keyed.find(0x10).as_deref(), Some(&3));
        assert_eq!(keyed.remove(0x10).as_deref(), Some(&3));
        assert_eq!((keyed.find(0x10), keyed.all().len()), (None, 1));
    }
}
