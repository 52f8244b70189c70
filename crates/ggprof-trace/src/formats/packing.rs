//! Compression of what is written. [`super::read`] recognises it by its first bytes.

use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress};
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    None,
    Gzip,
    Zstd,
}

impl Packing {
    /// Hands what `write` writes to `out`, compressed.
    pub fn write(
        self,
        out: &mut dyn Write,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        match self {
            Self::None => write(out),
            Self::Gzip => {
                let mut packer = GzEncoder::new(out, flate2::Compression::default());
                write(&mut packer)?;
                packer.finish().map(|_| ())
            }
            Self::Zstd => {
                let mut packer = ZstdWriter::new(out)?;
                write(&mut packer)?;
                packer.finish()
            }
        }
    }
}

/// Bytes that go to the compressor at once.
const PIECE: usize = 512 * 1024;
/// Pieces that wait for the compressor at most.
const WAITING: usize = 4;

/// Writes one frame of zstd. (Several frames in a row would be simpler to make, but some readers take
/// only the first.) The compressor asks for its input, so it runs in a thread of its own; what it
/// makes comes back here, where errors of `out` belong to somebody.
struct ZstdWriter<'o> {
    out: &'o mut dyn Write,
    piece: Vec<u8>,
    to_pack: SyncSender<Vec<u8>>,
    packed: Receiver<Vec<u8>>,
}

impl<'o> ZstdWriter<'o> {
    fn new(out: &'o mut dyn Write) -> io::Result<Self> {
        let (to_pack, pieces) = sync_channel(WAITING);
        let (results, packed) = channel();
        let source = Pieces { pieces, current: Vec::new(), taken: 0 };
        std::thread::Builder::new()
            .spawn(|| compress(source, Results(results), CompressionLevel::Fastest))?;
        Ok(Self { out, piece: Vec::with_capacity(PIECE), to_pack, packed })
    }

    fn send(&mut self) -> io::Result<()> {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        self.to_pack.send(piece).map_err(|_| io::Error::other("the compressor has ended"))?;
        self.packed.try_iter().try_for_each(|packed| self.out.write_all(&packed))
    }

    fn finish(mut self) -> io::Result<()> {
        if !self.piece.is_empty() {
            self.send()?;
        }
        let Self { out, to_pack, packed, .. } = self;
        // Without a sender the input is at its end.
        drop(to_pack);
        packed.iter().try_for_each(|packed| out.write_all(&packed))
    }
}

impl Write for ZstdWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == PIECE {
            self.send()?;
        }
        Ok(taken)
    }

    /// A frame is flushed when it is complete.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The compressor's input.
struct Pieces {
    pieces: Receiver<Vec<u8>>,
    current: Vec<u8>,
    taken: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.current.len() {
            self.current = self.pieces.recv().unwrap_or_default();
            self.taken = 0;
        }
        let count = buffer.len().min(self.current.len() - self.taken);
        buffer[..count].copy_from_slice(&self.current[self.taken..][..count]);
        self.taken += count;
        Ok(count)
    }
}

/// The compressor's output. It knows no errors: if nobody takes the results, its input ends soon.
struct Results(Sender<Vec<u8>>);

impl Write for Results {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.send(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than all that waits somewhere, and not all alike.
    fn text() -> Vec<u8> {
        (0..400_000u64).flat_map(|n| format!("{},", n * n % 7919).into_bytes()).collect()
    }

    #[test]
    fn comes_out_as_it_went_in() {
        for packing in [Packing::None, Packing::Gzip, Packing::Zstd] {
            for bytes in [Vec::new(), b"x".to_vec(), text()] {
                let mut packed = Vec::new();
                let in_parts = |out: &mut dyn Write| {
                    bytes.chunks(100_003).try_for_each(|part| out.write_all(part))
                };
                packing.write(&mut packed, in_parts).unwrap();
                let mut unpacked = Vec::new();
                match packing {
                    Packing::None => unpacked = packed.clone(),
                    Packing::Gzip => {
                        let mut decoder = flate2::read::GzDecoder::new(&packed[..]);
                        decoder.read_to_end(&mut unpacked).unwrap();
                    }
                    Packing::Zstd => {
                        let decoder = ruzstd::decoding::StreamingDecoder::new(&packed[..]);
                        decoder.unwrap().read_to_end(&mut unpacked).unwrap();
                    }
                }
                assert_eq!(unpacked, bytes, "{packing:?}");
                let is_smaller = packed.len() < bytes.len() / 2;
                assert_eq!(is_smaller, packing != Packing::None && bytes.len() > 1, "{packing:?}");
            }
        }
    }

    #[test]
    fn errors_of_the_output_are_told() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let taken = bytes.len().min(self.0);
                self.0 -= taken;
                match taken {
                    0 => Err(io::ErrorKind::StorageFull.into()),
                    _ => Ok(taken),
                }
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for packing in [Packing::None, Packing::Gzip, Packing::Zstd] {
            for room in [0, 5, 1000] {
                let ended = packing.write(&mut Full(room), |out| out.write_all(&text()));
                let kind = ended.map_err(|error| error.kind());
                assert_eq!(kind, Err(io::ErrorKind::StorageFull), "{packing:?}");
            }
        }
    }
}
