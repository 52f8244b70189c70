//! The short way for records: most describe a tensor that was described before.
//!
//! ggml writes what changes (times, sizes) first and the description of the tensor after
//! it, some 300 bytes that are the same for every token. So a record is read up to the
//! first key that belongs to the description; if the rest of it equals, byte for byte, a
//! description that was parsed before, the node is known and nothing needs parsing.
//! Whatever does not fit goes the long way (`record.rs`): the outcome is the same.

use super::record::{Happening, thread_fold};
use crate::model::{EventKind, Measured, NodeId};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// Descriptions remembered at most, in bytes. A model has a few hundred kilobytes of them;
/// a file made to have no two alike must not fill the memory.
const MEMORY: usize = 32 * 1024 * 1024;

/// A record split into what changes and what repeats.
#[derive(Debug)]
pub(super) struct SplitRecord<'a> {
    pub(super) happening: Happening,
    name: &'a [u8],
    description: &'a [u8],
    /// Bytes of the whole record.
    pub(super) length: usize,
}

/// Splits the record at the start of `bytes`; `None` if it must go the long way.
pub(super) fn split(bytes: &[u8]) -> Option<SplitRecord<'_>> {
    let mut cursor = Cursor { bytes, at: 0 };
    cursor.byte(b'{')?;
    let (mut kind, mut name, mut backend_id, mut split_id) = (None, None, None, None);
    let (mut start_ns, mut duration_ns, mut size) = (None, None, None);
    let (mut source_backend_id, mut graph_run, mut threads) = (None, None, None);
    let mut measured = None;
    let description = loop {
        cursor.spaces();
        let member = cursor.at;
        let key = cursor.plain_string()?;
        cursor.spaces();
        cursor.byte(b':')?;
        cursor.spaces();
        match key {
            b"type" => set(&mut kind, cursor.unsigned()?)?,
            b"name" => set(&mut name, cursor.plain_string()?)?,
            b"backend_id" => set(&mut backend_id, cursor.signed()?)?,
            b"split_id" => set(&mut split_id, cursor.signed()?)?,
            b"start_ns" => set(&mut start_ns, cursor.unsigned()?)?,
            b"duration_ns" => set(&mut duration_ns, cursor.unsigned()?)?,
            b"bytes" => set(&mut size, cursor.unsigned()?)?,
            b"source_backend_id" => set(&mut source_backend_id, cursor.signed()?)?,
            b"graph_run" => set(&mut graph_run, u32::try_from(cursor.unsigned()?).ok()?)?,
            b"measured" => set(&mut measured, cursor.measured()?)?,
            b"threads" => set(&mut threads, cursor.four_numbers()?)?,
            _ => break member,
        }
        cursor.spaces();
        cursor.byte(b',')?;
    };
    // A description with a brace in a name ends too early here, is never found among the
    // remembered ones, and so goes the long way.
    let length = description + memchr::memchr(b'}', &bytes[description..])? + 1;
    let (start_ns, duration_ns) = (start_ns?, duration_ns?);
    u64::checked_add(start_ns, duration_ns)?;
    let happening = Happening {
        kind: match kind? {
            0 => EventKind::Op,
            1 => EventKind::Copy,
            _ => return None,
        },
        backend_id: backend_id?,
        split_id: split_id?,
        start_ns,
        duration_ns,
        bytes: size?,
        source_backend_id,
        graph_run,
        measured: measured.unwrap_or(Measured::Unknown),
        threads: threads.and_then(thread_fold),
    };
    Some(SplitRecord { happening, name: name?, description: &bytes[description..length], length })
}

/// Fills a value once; a key that comes twice goes the long way, which refuses it.
fn set<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

/// Reads forward through a record; every method gives up with `None` on anything unusual.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn byte(&mut self, expected: u8) -> Option<()> {
        (self.peek()? == expected).then(|| self.at += 1)
    }

    /// A string of printable ASCII without escapes, so that its bytes are its text.
    fn plain_string(&mut self) -> Option<&'a [u8]> {
        self.byte(b'"')?;
        let start = self.at;
        loop {
            match self.peek()? {
                b'"' => break,
                b' '..=b'!' | b'#'..=b'[' | b']'..=b'~' => self.at += 1,
                _ => return None,
            }
        }
        self.at += 1;
        Some(&self.bytes[start..self.at - 1])
    }

    fn unsigned(&mut self) -> Option<u64> {
        let start = self.at;
        let mut value = 0u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            // Nineteen digits cannot overflow; longer numbers are checked the long way.
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        let digits = self.at - start;
        let plain = (1..20).contains(&digits) && (digits == 1 || self.bytes[start] != b'0');
        // A fraction or an exponent makes it another number.
        (plain && !matches!(self.peek()?, b'.' | b'e' | b'E')).then_some(value)
    }

    fn signed(&mut self) -> Option<i32> {
        let negative = self.byte(b'-').is_some();
        let value = i64::try_from(self.unsigned()?).ok()?;
        i32::try_from(if negative { -value } else { value }).ok()
    }

    fn measured(&mut self) -> Option<Measured> {
        Measured::from_name(str::from_utf8(self.plain_string()?).ok()?)
    }

    fn four_numbers(&mut self) -> Option<[u64; 4]> {
        let mut numbers = [0; 4];
        for (at, number) in numbers.iter_mut().enumerate() {
            self.byte(if at == 0 { b'[' } else { b',' })?;
            self.spaces();
            *number = self.unsigned()?;
            self.spaces();
        }
        self.byte(b']')?;
        Some(numbers)
    }
}

/// The descriptions seen so far, as raw bytes, and the node each stands for.
#[derive(Debug, Default)]
pub(super) struct KnownDescriptions {
    raw: Vec<u8>,
    entries: Vec<Entry>,
    lookup: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

#[derive(Debug)]
struct Entry {
    start: usize,
    name_end: usize,
    end: usize,
    node: NodeId,
}

impl KnownDescriptions {
    pub(super) fn find(&self, record: &SplitRecord<'_>) -> Option<NodeId> {
        let hash = self.hash(record.name, record.description);
        let found = self.lookup.find(hash, |&at| {
            let (name, description) = self.parts(at);
            description == record.description && name == record.name
        });
        found.map(|&at| self.entries[at as usize].node)
    }

    pub(super) fn remember(&mut self, record: &SplitRecord<'_>, node: NodeId) {
        let length = record.name.len() + record.description.len();
        if self.raw.len() + length > MEMORY {
            return;
        }
        let start = self.raw.len();
        self.raw.extend_from_slice(record.name);
        let name_end = self.raw.len();
        self.raw.extend_from_slice(record.description);
        let at = self.entries.len() as u32;
        self.entries.push(Entry { start, name_end, end: self.raw.len(), node });
        let hash = self.hash(record.name, record.description);
        let Self { raw, entries, lookup, hasher } = self;
        lookup.insert_unique(hash, at, |&at| {
            let entry = &entries[at as usize];
            hash_parts(hasher, &raw[entry.start..entry.name_end], &raw[entry.name_end..entry.end])
        });
    }

    fn parts(&self, at: u32) -> (&[u8], &[u8]) {
        let entry = &self.entries[at as usize];
        (&self.raw[entry.start..entry.name_end], &self.raw[entry.name_end..entry.end])
    }

    fn hash(&self, name: &[u8], description: &[u8]) -> u64 {
        hash_parts(&self.hasher, name, description)
    }
}

fn hash_parts(hasher: &DefaultHashBuilder, name: &[u8], description: &[u8]) -> u64 {
    hasher.hash_one((name, description))
}
