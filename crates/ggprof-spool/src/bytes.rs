//! Where the bytes of a recording are: in memory or in a file. They are read at any place, by several
//! threads at once.

#![forbid(unsafe_code)]

use crate::positioned;
use std::fs::File;
use std::io::{self, Read};

/// Bytes that can be read at any place.
pub trait Bytes: Sync {
    fn len(&self) -> u64;

    /// Fills `bytes` from `offset` on. Beyond the end there is nothing to read.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Bytes for [u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let from = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let part = from.and_then(|rest| rest.get(..bytes.len()));
        bytes.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A file as long as it was when it was opened, and what stands behind it.
#[derive(Debug)]
pub struct FileBytes {
    file: File,
    length: u64,
    behind: Vec<u8>,
}

impl FileBytes {
    pub fn new(file: File, length: u64, behind: Vec<u8>) -> Self {
        Self { file, length, behind }
    }
}

impl Bytes for FileBytes {
    fn len(&self) -> u64 {
        self.length + self.behind.len() as u64
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let in_file = self.length.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let (from_file, rest) = bytes.split_at_mut(in_file);
        if !from_file.is_empty() {
            positioned::read_exact_at(&self.file, from_file, offset)?;
        }
        match rest.is_empty() {
            true => Ok(()),
            false => self.behind[..].read_exact_at(rest, (offset + in_file as u64) - self.length),
        }
    }
}

/// Reads a source to its end.
#[derive(Debug)]
pub struct InOrder<'s, S: ?Sized> {
    source: &'s S,
    at: u64,
}

impl<'s, S: Bytes + ?Sized> InOrder<'s, S> {
    pub fn from(source: &'s S, at: u64) -> Self {
        Self { source, at }
    }
}

impl<S: Bytes + ?Sized> Read for InOrder<'_, S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.source.len().saturating_sub(self.at);
        let count = left.min(bytes.len() as u64) as usize;
        self.source.read_exact_at(&mut bytes[..count], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
