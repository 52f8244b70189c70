//! Interned strings: names repeat for every token, so each is kept once.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringId(u32);

impl StringId {
    /// Its place in its table, for columns beside it.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One buffer of text and where each string ends in it.
#[derive(Debug, Default)]
pub struct StringTable {
    text: String,
    ends: Vec<usize>,
    lookup: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl StringTable {
    pub fn intern(&mut self, string: &str) -> StringId {
        let Self { text, ends, lookup, hasher } = self;
        let hash = hasher.hash_one(string);
        if let Some(&id) = lookup.find(hash, |&id| slice(text, ends, id) == string) {
            return StringId(id);
        }
        let id = ends.len() as u32;
        text.push_str(string);
        ends.push(text.len());
        lookup.insert_unique(hash, id, |&id| hasher.hash_one(slice(text, ends, id)));
        StringId(id)
    }

    #[inline]
    pub fn get(&self, id: StringId) -> &str {
        slice(&self.text, &self.ends, id.0)
    }

    /// All strings, by their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.ends.len() as u32).map(|id| slice(&self.text, &self.ends, id))
    }

    /// How many different strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The id of a string that was interned before.
    pub fn find(&self, string: &str) -> Option<StringId> {
        let hash = self.hasher.hash_one(string);
        let found = self.lookup.find(hash, |&id| slice(&self.text, &self.ends, id) == string);
        found.map(|&id| StringId(id))
    }
}

#[inline]
fn slice<'a>(text: &'a str, ends: &[usize], id: u32) -> &'a str {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &text[start..ends[id]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_an_id() {
        let mut table = StringTable::default();
        let names = ["", "MUL_MAT", "Qcur-0", "MUL_MAT", "µ"];
        let ids: Vec<_> = names.iter().map(|name| table.intern(name)).collect();
        assert_eq!(ids[1], ids[3]);
        for (name, id) in names.iter().zip(&ids) {
            assert_eq!(table.get(*id), *name);
            assert_eq!(table.find(name), Some(*id));
        }
        assert_eq!(table.find("ADD"), None);
    }
}
