//! A window that slides over the input, so that memory is bounded however large the file is.

use std::io::{self, Read};

/// Bytes held at once, and so the largest value that can be looked at whole. Half the
/// usual level-2 cache, so that what was read is still there when it is parsed.
const CAPACITY: usize = 512 * 1024;

/// Bytes that are in memory, from the current position on.
#[derive(Debug)]
pub(super) struct Window<R> {
    input: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Where `buffer[0]` stands in the input.
    offset: u64,
    ended: bool,
}

impl<R: Read> Window<R> {
    pub(super) fn new(input: R) -> Self {
        let buffer = vec![0; CAPACITY].into_boxed_slice();
        Self { input, buffer, start: 0, end: 0, offset: 0, ended: false }
    }

    /// What is in memory from the current position on. Often less than the rest of the input.
    pub(super) fn in_memory(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Position in the input, for messages.
    pub(super) fn position(&self) -> u64 {
        self.offset + self.start as u64
    }

    pub(super) fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start += count;
    }

    /// Brings more of the input into memory; `false` at its end or if the window is full.
    pub(super) fn extend(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.offset += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            return Ok(false);
        }
        let before = self.end;
        while self.end < self.buffer.len() {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.end > before)
    }

    /// Whether nothing follows what is in memory.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Makes sure that `count` bytes are in memory, unless the input ends first.
    pub(super) fn want(&mut self, count: usize) -> io::Result<()> {
        if self.end - self.start < count {
            self.extend()?;
        }
        Ok(())
    }

    /// The next byte, without passing it.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.start == self.end && !self.extend()? {
            return Ok(None);
        }
        Ok(Some(self.buffer[self.start]))
    }
}

/// Consumes the window byte by byte, for values that are parsed as they arrive.
impl<R: Read> Read for Window<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.peek()?.is_none() {
            return Ok(0);
        }
        let count = buf.len().min(self.in_memory().len());
        buf[..count].copy_from_slice(&self.in_memory()[..count]);
        self.advance(count);
        Ok(count)
    }
}
