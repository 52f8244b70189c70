//! Recognises an input by its first bytes, and opens it.
//!
//! Neither the name nor the extension matters: recordings come through pipes, and people rename
//! files.

use super::zstd_frames::ZstdFrames;
use super::{ggml_json, spool};
use crate::Trace;
use ggprof_spool::bytes::{Bytes, InOrder};
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read, Write};

/// Why an input gave no recording at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("it is empty")]
    Empty,
    #[error("it is not a ggml profile: {0}")]
    NotAProfile(String),
    #[error("it has more than {0} events")]
    TooManyEvents(u32),
    #[error(transparent)]
    Io(#[from] io::Error),
}

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Reads a recording of any known format, compressed or not.
pub fn read(mut input: impl Read) -> Result<Trace, ReadError> {
    read_any(&mut input)
}

fn read_any(input: &mut dyn Read) -> Result<Trace, ReadError> {
    let (start, whole) = first_bytes(BufReader::with_capacity(64 * 1024, input))?;
    if start.is_empty() {
        Err(ReadError::Empty)
    } else if start.starts_with(GZIP) {
        unpack(flate2::bufread::MultiGzDecoder::new(whole))
    } else if start.starts_with(ZSTD) {
        unpack(ZstdFrames::new(whole))
    } else {
        read_plain(start, whole)
    }
}

/// The same from a place where it can be read piece by piece, which takes much less memory for a
/// recording of ggprof.
pub fn read_source<S: Bytes + ?Sized>(source: &S) -> Result<Trace, ReadError> {
    let mut start = vec![0; source.len().min(spool::MAGIC.len() as u64) as usize];
    source.read_exact_at(&mut start, 0)?;
    if start == spool::MAGIC {
        return spool::read_source(source);
    }
    // Nothing is fetched twice: a bar would take that for a second pass.
    let rest = InOrder::from(source, start.len() as u64);
    read(Cursor::new(start).chain(rest))
}

/// Copies a recording as the agent made it, without its compression. Nothing else can be copied as
/// one: other formats hold less.
pub fn copy_recording(input: impl Read, out: &mut dyn Write) -> Result<(), ReadError> {
    let (start, whole) = first_bytes(BufReader::with_capacity(64 * 1024, input))?;
    if start.starts_with(GZIP) {
        copy_plain(flate2::bufread::MultiGzDecoder::new(whole), out)
    } else if start.starts_with(ZSTD) {
        copy_plain(ZstdFrames::new(whole), out)
    } else {
        copy_plain(whole, out)
    }
}

fn copy_plain(input: impl Read, out: &mut dyn Write) -> Result<(), ReadError> {
    let (start, mut whole) = first_bytes(input)?;
    if start != spool::MAGIC {
        return Err(ReadError::NotAProfile("it is not a recording of ggprof".to_owned()));
    }
    io::copy(&mut whole, out)?;
    Ok(())
}

/// An input with its first bytes in front again.
type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// The first eight bytes of an input, and the whole input.
fn first_bytes<R: Read>(mut input: R) -> io::Result<(Vec<u8>, Whole<R>)> {
    let mut start = Vec::with_capacity(8);
    input.by_ref().take(8).read_to_end(&mut start)?;
    Ok((start.clone(), Cursor::new(start).chain(input)))
}

fn read_plain(start: Vec<u8>, whole: impl Read) -> Result<Trace, ReadError> {
    if start == spool::MAGIC {
        spool::read(whole)
    } else if start == [0; 8] {
        Err(zeros(whole)?)
    } else {
        ggml_json::read(whole)
    }
}

/// A recording whose program was killed when it had made the room for it consists of zeros.
fn zeros(whole: impl Read) -> io::Result<ReadError> {
    let mut bytes = BufReader::with_capacity(64 * 1024, whole);
    loop {
        let some = bytes.fill_buf()?;
        if some.is_empty() {
            return Ok(ReadError::Empty);
        }
        if some.iter().any(|&byte| byte != 0) {
            return Ok(ReadError::NotAProfile("it begins with zeros".to_owned()));
        }
        let count = some.len();
        bytes.consume(count);
    }
}

fn unpack(decoder: impl Read) -> Result<Trace, ReadError> {
    let mut unpacked = Unpacked { decoder, delivered: false, damaged: false };
    let result = first_bytes(&mut unpacked)
        .map_err(ReadError::Io)
        .and_then(|(start, whole)| read_plain(start, whole));
    match result {
        Err(_) if unpacked.damaged && !unpacked.delivered => Err(bad_compression()),
        result => result,
    }
}

fn bad_compression() -> ReadError {
    ReadError::NotAProfile("its compressed data is damaged from the start".to_owned())
}

/// A decompressor whose complaints about damaged data count as the end of the data.
///
/// What came out before the damage is good, and the JSON reader says that the recording is
/// cut off, which is what a person needs to hear.
struct Unpacked<R> {
    decoder: R,
    delivered: bool,
    damaged: bool,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.decoder.read(buf) {
            // Errors of the operating system are not the decompressor's.
            Err(error) if error.raw_os_error().is_none() => {
                self.damaged = true;
                Ok(0)
            }
            result => {
                self.delivered |= matches!(result, Ok(1..));
                result
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Counts what is fetched.
    struct Counting(Vec<u8>, AtomicU64);

    impl Bytes for Counting {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
            self.1.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            bytes.copy_from_slice(&self.0[offset as usize..][..bytes.len()]);
            Ok(())
        }
    }

    #[test]
    fn what_is_read_in_order_is_fetched_once() {
        for text in ["{\"version\": 3, \"backends\": [], \"records\": []}", "[1]", ""] {
            let source = Counting(text.as_bytes().to_vec(), AtomicU64::new(0));
            let read = read_source(&source);
            assert_eq!(read.is_ok(), text.len() > 8, "{text}");
            assert_eq!(source.1.into_inner(), text.len() as u64, "{text}");
        }
    }
}
