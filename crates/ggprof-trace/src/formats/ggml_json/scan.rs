//! Cuts JSON values out of the window without parsing them.

use super::window::Window;
use std::io::{self, Read};

/// What a value turned out to be when its end was looked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The value is in memory and has this many bytes.
    Whole(usize),
    /// The input ends inside the value.
    Cut,
    /// A raw line break inside a string, this many bytes from the start of the value. JSON
    /// forbids it, so a quotation mark before it was not escaped and nothing after it on
    /// the line means what it seems to mean.
    Broken(usize),
    /// The value is larger than the window.
    TooLong,
}

/// Finds the end of the value at the current position, which is left in place.
pub(super) fn frame(window: &mut Window<impl Read>) -> io::Result<Frame> {
    let mut value = ValueEnd::default();
    let mut seen = 0;
    loop {
        let bytes = window.in_memory();
        match value.find(&bytes[seen..]) {
            Found::End(at) => return Ok(Frame::Whole(seen + at)),
            Found::LineBreak(at) => return Ok(Frame::Broken(seen + at)),
            Found::NotYet => seen = bytes.len(),
        }
        if !window.extend()? {
            return Ok(match window.has_ended() {
                false => Frame::TooLong,
                true if value.is_complete_scalar() => Frame::Whole(seen),
                true => Frame::Cut,
            });
        }
    }
}

/// Passes the value at the current position, however long; `false` if the input ends inside.
pub(super) fn skip(window: &mut Window<impl Read>) -> io::Result<bool> {
    let mut value = ValueEnd::default();
    loop {
        let bytes = window.in_memory();
        let length = bytes.len();
        match value.find(bytes) {
            Found::End(at) => {
                window.advance(at);
                return Ok(true);
            }
            // Nobody reads the value, so a line break in one of its strings does no harm.
            Found::LineBreak(at) => window.advance(at + 1),
            Found::NotYet => {
                window.advance(length);
                if !window.extend()? {
                    return Ok(value.is_complete_scalar());
                }
            }
        }
    }
}

/// Passes white space and returns the byte that follows.
pub(super) fn next_byte(window: &mut Window<impl Read>) -> io::Result<Option<u8>> {
    while let Some(byte) = window.peek()? {
        if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            return Ok(Some(byte));
        }
        window.advance(1);
    }
    Ok(None)
}

/// Goes to the next place where a record may begin, after one that could not be framed.
/// `false` if there is none.
pub(super) fn resynchronise(window: &mut Window<impl Read>) -> io::Result<bool> {
    /// The first key of every record that ggml writes.
    const RECORD: &[u8] = b"{\"type\"";
    window.advance(window.in_memory().len().min(1));
    loop {
        if let Some(at) = memchr::memmem::find(window.in_memory(), RECORD) {
            window.advance(at);
            return Ok(true);
        }
        let keep = window.in_memory().len().min(RECORD.len() - 1);
        window.advance(window.in_memory().len() - keep);
        if !window.extend()? {
            return Ok(false);
        }
    }
}

enum Found {
    /// The value ends before this byte.
    End(usize),
    /// There is a raw line break in a string, at this byte.
    LineBreak(usize),
    NotYet,
}

/// Follows a value piece by piece until its end.
#[derive(Debug, Default)]
struct ValueEnd {
    depth: u64,
    in_string: bool,
    escaped: bool,
    /// Inside a number or a word at depth zero, which ends where something else begins.
    in_scalar: bool,
}

impl ValueEnd {
    fn find(&mut self, bytes: &[u8]) -> Found {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                match self.pass_string(&bytes[at..]) {
                    Found::End(length) => at += length,
                    Found::LineBreak(length) => return Found::LineBreak(at + length),
                    Found::NotYet => return Found::NotYet,
                }
                if self.depth == 0 {
                    return Found::End(at);
                }
                continue;
            }
            match bytes[at] {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                b'}' | b']' if self.depth == 1 => return Found::End(at + 1),
                b'}' | b']' | b',' | b' ' | b'\n' | b'\r' | b'\t' if self.depth == 0 => {
                    return Found::End(at);
                }
                _ => self.in_scalar = self.depth == 0,
            }
            at += 1;
        }
        Found::NotYet
    }

    /// Passes the rest of a string, its closing quotation mark included.
    fn pass_string(&mut self, bytes: &[u8]) -> Found {
        let mut at = 0;
        while at < bytes.len() {
            if self.escaped {
                self.escaped = false;
                at += 1;
                continue;
            }
            match memchr::memchr3(b'"', b'\\', b'\n', &bytes[at..]) {
                None => return Found::NotYet,
                Some(found) => at += found,
            }
            match bytes[at] {
                b'"' => {
                    self.in_string = false;
                    return Found::End(at + 1);
                }
                b'\\' => self.escaped = true,
                _ => return Found::LineBreak(at),
            }
            at += 1;
        }
        Found::NotYet
    }

    fn is_complete_scalar(&self) -> bool {
        self.in_scalar && self.depth == 0 && !self.in_string
    }
}
