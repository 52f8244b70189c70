//! Reads zstd of several frames, one after the other: `pzstd` writes such files, and `cat` makes them.
//! The decoder knows one frame.

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, Read};

pub(super) struct ZstdFrames<R> {
    source: Source<R>,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: Read> ZstdFrames<R> {
    pub(super) fn new(input: R) -> Self {
        let source = Source { first: None, rest: input };
        Self { source, decoder: FrameDecoder::new(), is_in_frame: false }
    }

    /// Begins the next frame that has data; whether there is one.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.is_in_frame {
            if self.source.is_at_end()? {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => self.is_in_frame = true,
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = &mut self.source.by_ref().take(length.into());
                    io::copy(skipped, &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(true)
    }
}

impl<R: Read> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() && self.begin()? {
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, one).map_err(io::Error::other)?;
            }
            match self.decoder.read(buffer)? {
                0 => self.is_in_frame = false,
                count => return Ok(count),
            }
        }
        Ok(0)
    }
}

/// An input of which one byte may have been looked at.
struct Source<R> {
    first: Option<u8>,
    rest: R,
}

impl<R: Read> Source<R> {
    fn is_at_end(&mut self) -> io::Result<bool> {
        if self.first.is_none() {
            let mut byte = [0];
            self.first = (self.rest.read(&mut byte)? == 1).then_some(byte[0]);
        }
        Ok(self.first.is_none())
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.first, buffer.first_mut()) {
            (Some(byte), Some(place)) => {
                *place = byte;
                self.first = None;
                Ok(1)
            }
            _ => self.rest.read(buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    fn packed(text: &[u8]) -> Vec<u8> {
        compress_to_vec(text, CompressionLevel::Fastest)
    }

    fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        ZstdFrames::new(bytes).read_to_end(&mut text).map(|_| text)
    }

    #[test]
    fn all_frames_are_read() {
        let long: Vec<u8> = (0..300_000u32).flat_map(|n| (n % 977).to_le_bytes()).collect();
        // Some programs put their notes between frames.
        let note = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let parts = [packed(&long), note.clone(), packed(b""), packed(b"end"), note];
        assert!(unpacked(&parts.concat()).unwrap() == [&long[..], b"end"].concat());
        assert_eq!(unpacked(b"").unwrap(), b"");
        let cut = packed(&long);
        assert!(unpacked(&cut[..cut.len() / 2]).is_err());
        assert!(unpacked(&[packed(b"x"), b"rest".to_vec()].concat()).is_err());
    }
}
