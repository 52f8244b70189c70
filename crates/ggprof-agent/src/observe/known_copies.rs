//! Copies that repeat with every token: their two backends are found out once and then remembered
//! by the lane. Finding out takes a dozen calls and locks, half a microsecond for each of the ten
//! copies that a token on a GPU needs.

use ggprof_spool::layout::CopyEvent;

/// Everything that decides between which backends and which memory a copy goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    /// Digests of the tensors' names, source first, as below.
    pub(crate) names: [u64; 2],
    /// Of the target, where all of it is copied.
    pub(crate) shape: u64,
    pub(crate) buffer_types: [usize; 2],
    /// The backends that the call named.
    pub(crate) backends: [usize; 2],
    pub(crate) scheduler: usize,
    /// How many backends and schedulers had been made and freed until then.
    pub(crate) changes: u32,
}

/// What is remembered: these fields of the event.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    /// The direction, and whether it is an input.
    pub(crate) flags: u8,
    /// Numbers of the names, valid within the lane's epoch.
    pub(crate) names: [u32; 2],
    pub(crate) backends: [u32; 2],
    /// Numbers of the kinds of memory.
    pub(crate) memories: [u16; 2],
    /// Of a target that is copied whole.
    pub(crate) bytes: u64,
}

impl Ends {
    /// An event between these ends.
    pub(crate) fn event(self) -> CopyEvent {
        let ([source, target], [source_backend, target_backend]) = (self.names, self.backends);
        let (flags, bytes) = (self.flags, self.bytes);
        let [source_memory, target_memory] = self.memories;
        CopyEvent {
            flags,
            source,
            target,
            source_backend,
            target_backend,
            source_memory,
            target_memory,
            bytes,
            ..Default::default()
        }
    }
}

/// More than a token has. Of two copies that want the same place, the later one replaces the
/// earlier.
const PLACES: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct KnownCopies {
    /// Empty until there is something to remember.
    places: Vec<(Key, Ends)>,
}

impl KnownCopies {
    pub(crate) fn find(&self, key: &Key) -> Option<Ends> {
        let (known, ends) = self.places.get(place(key))?;
        (known == key).then_some(*ends)
    }

    pub(crate) fn remember(&mut self, key: Key, ends: Ends) {
        self.places.resize(PLACES, Default::default());
        self.places[place(&key)] = (key, ends);
    }
}

fn place(key: &Key) -> usize {
    (key.names[0] ^ key.names[1].rotate_left(32)) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_known_until_something_about_it_changes() {
        let mut known = KnownCopies::default();
        let key = Key { names: [3, 4], changes: 1, ..Default::default() };
        assert!(known.find(&key).is_none());
        known.remember(key, Ends { names: [7, 8], ..Default::default() });
        assert_eq!(known.find(&key).map(|ends| ends.names), Some([7, 8]));
        for other in [
            Key { changes: 2, ..key },
            Key { buffer_types: [1, 0], ..key },
            Key { shape: 1, ..key },
            Key { names: [4, 3], ..key },
        ] {
            assert!(known.find(&other).is_none(), "{other:?}");
        }
    }
}
