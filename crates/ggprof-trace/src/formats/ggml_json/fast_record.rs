//! The fast path for records: most describe a tensor that was described before.
//!
//! ggml writes what changes (times, sizes) first and then the description of the tensor, some 300
//! bytes that are the same for every token. So a record is read up to the first key of the
//! description. If the rest equals, byte for byte, a description that was parsed before, the node
//! is known and nothing needs parsing. Any other record takes the slow path (`record.rs`), with the
//! same result.

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
    /// Bytes before the description.
    before: usize,
    /// The description, and all that follows the record.
    rest: &'a [u8],
}

impl<'a> SplitRecord<'a> {
    /// A description with a brace in a name ends too early here, is never found among the remembered
    /// ones, and so goes the long way.
    fn description(&self) -> Option<&'a [u8]> {
        Some(&self.rest[..memchr::memchr(b'}', self.rest)? + 1])
    }

    /// Bytes of the whole record.
    pub(super) fn length(&self) -> Option<usize> {
        Some(self.before + self.description()?.len())
    }
}

/// Splits the record at the start of `bytes`; `None` if it must go the long way.
///
/// The keys are expected in the order that ggml writes them, with or without a space after
/// colons and commas.
pub(super) fn split(bytes: &[u8]) -> Option<SplitRecord<'_>> {
    let mut cursor = Cursor { rest: bytes };
    cursor.pass(b"{\"type\":")?;
    let kind = match cursor.unsigned()? {
        0 => EventKind::Op,
        1 => EventKind::Copy,
        _ => return None,
    };
    cursor.pass(b",")?;
    cursor.pass(b"\"name\":")?;
    let name = cursor.plain_string()?;
    let backend_id = cursor.signed_member(b"\"backend_id\":")?;
    let split_id = cursor.signed_member(b"\"split_id\":")?;
    let start_ns = cursor.unsigned_member(b"\"start_ns\":")?;
    let duration_ns = cursor.unsigned_member(b"\"duration_ns\":")?;
    let size = cursor.unsigned_member(b"\"bytes\":")?;
    u64::checked_add(start_ns, duration_ns)?;
    let mut happening = Happening {
        kind,
        backend_id,
        split_id,
        start_ns,
        duration_ns,
        bytes: size,
        source_backend_id: None,
        graph_run: None,
        measured: Measured::Unknown,
        threads: None,
    };
    cursor.additions(&mut happening)?;
    let before = bytes.len() - cursor.rest.len();
    Some(SplitRecord { happening, name, before, rest: cursor.rest })
}

/// Reads forward through a record; every method gives up with `None` on anything unusual.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Skips `expected` and one space after it.
    #[inline(always)]
    fn pass<const N: usize>(&mut self, expected: &[u8; N]) -> Option<()> {
        let (start, rest) = self.rest.split_first_chunk()?;
        let after_space = rest.split_first().filter(|(first, _)| **first == b' ');
        (start == expected).then(|| self.rest = after_space.map_or(rest, |(_, rest)| rest))
    }

    #[inline(always)]
    fn unsigned_member<const N: usize>(&mut self, key: &[u8; N]) -> Option<u64> {
        self.pass(b",")?;
        self.pass(key)?;
        self.unsigned()
    }

    #[inline(always)]
    fn signed_member<const N: usize>(&mut self, key: &[u8; N]) -> Option<i32> {
        self.pass(b",")?;
        self.pass(key)?;
        self.signed()
    }

    /// The members that ggprof writes between what changes and the description.
    fn additions(&mut self, happening: &mut Happening) -> Option<()> {
        self.pass(b",")?;
        if self.pass(b"\"source_backend_id\":").is_some() {
            happening.source_backend_id = Some(self.signed()?);
            self.pass(b",")?;
        }
        if self.pass(b"\"graph_run\":").is_some() {
            happening.graph_run = Some(u32::try_from(self.unsigned()?).ok()?);
            self.pass(b",")?;
        }
        if self.pass(b"\"measured\":").is_some() {
            let name = str::from_utf8(self.plain_string()?).ok()?;
            happening.measured = Measured::from_name(name)?;
            self.pass(b",")?;
        }
        if self.pass(b"\"threads\":").is_some() {
            happening.threads = thread_fold(self.four_numbers()?);
            self.pass(b",")?;
        }
        Some(())
    }

    /// A string of printable ASCII without escapes, so that its bytes are its text.
    fn plain_string(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.strip_prefix(b"\"")?;
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'!' | b'#'..=b'[' | b']'..=b'~');
        let length = rest.iter().position(|byte| !is_plain(byte))?;
        let (string, rest) = rest.split_at(length);
        self.rest = rest.strip_prefix(b"\"")?;
        Some(string)
    }

    #[inline(always)]
    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0u64;
        let mut digits = 0;
        for byte in self.rest {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += 1;
        }
        // Nineteen digits cannot overflow; longer numbers are checked the long way.
        let plain = (1..20).contains(&digits) && (digits == 1 || self.rest[0] != b'0');
        self.rest = &self.rest[digits..];
        // A fraction or an exponent makes it another number.
        (plain && !matches!(self.rest.first()?, b'.' | b'e' | b'E')).then_some(value)
    }

    fn signed(&mut self) -> Option<i32> {
        match self.rest.strip_prefix(b"-") {
            None => i32::try_from(self.unsigned()?).ok(),
            Some(rest) => {
                self.rest = rest;
                i64::try_from(self.unsigned()?).ok().and_then(|value| i32::try_from(-value).ok())
            }
        }
    }

    fn four_numbers(&mut self) -> Option<[u64; 4]> {
        let mut numbers = [0; 4];
        for (at, number) in numbers.iter_mut().enumerate() {
            self.pass(if at == 0 { b"[" } else { b"," })?;
            *number = self.unsigned()?;
        }
        self.pass(b"]")?;
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
    /// The entry of the record before.
    last: Option<u32>,
}

#[derive(Debug)]
struct Entry {
    start: usize,
    name_end: usize,
    end: usize,
    node: NodeId,
    /// The entry of the record that came after it last time. A program computes the same graph again
    /// and again, so it mostly is the next one, too.
    next: Option<u32>,
}

impl KnownDescriptions {
    /// The node of a record, and the bytes of the whole record.
    pub(super) fn find(&mut self, record: &SplitRecord<'_>) -> Option<(NodeId, usize)> {
        let at = self.expected(record).or_else(|| self.search(record))?;
        self.follow(at);
        let Entry { name_end, end, node, .. } = self.entries[at as usize];
        Some((node, record.before + end - name_end))
    }

    /// The entry that came after the last one before, if it is that of the record.
    fn expected(&self, record: &SplitRecord<'_>) -> Option<u32> {
        let next = self.entries[self.last? as usize].next?;
        let (name, description) = self.parts(next);
        (record.name == name && record.rest.starts_with(description)).then_some(next)
    }

    fn search(&self, record: &SplitRecord<'_>) -> Option<u32> {
        let sought = record.description()?;
        let hash = self.hash(record.name, sought);
        let is_it = |&at: &u32| {
            let (name, description) = self.parts(at);
            description == sought && name == record.name
        };
        self.lookup.find(hash, is_it).copied()
    }

    /// Notes which entry came after the last one.
    fn follow(&mut self, at: u32) {
        if let Some(last) = self.last.replace(at) {
            self.entries[last as usize].next = Some(at);
        }
    }

    pub(super) fn remember(&mut self, record: &SplitRecord<'_>, node: NodeId) {
        let Some(description) = record.description() else { return };
        if self.raw.len() + record.name.len() + description.len() > MEMORY {
            return;
        }
        let start = self.raw.len();
        self.raw.extend_from_slice(record.name);
        let name_end = self.raw.len();
        self.raw.extend_from_slice(description);
        let at = self.entries.len() as u32;
        self.entries.push(Entry { start, name_end, end: self.raw.len(), node, next: None });
        self.follow(at);
        let hash = self.hash(record.name, description);
        let Self { raw, entries, lookup, hasher, .. } = self;
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
