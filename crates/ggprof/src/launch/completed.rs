//! The recording of a process that has ended, with what the launcher knows of its run behind it.
//! The file itself stays as it is.

use super::machine;
use super::sensors::{self, Samples};
use super::size_limit::for_readings;
use ggprof_spool::appendix::Appendix;
use ggprof_spool::live::LiveSpool;
use ggprof_spool::reader::Header;
use ggprof_trace::formats::FileBytes;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Mutex;

/// What to put behind a recording of this header and length; empty where there is nothing.
pub(super) fn behind(header: &Header, file_bytes: u64, samples: &Mutex<Samples>) -> Vec<u8> {
    let Some(mut appendix) = Appendix::behind(header.reserved_blocks, file_bytes) else {
        return Vec::new();
    };
    machine::put(&mut appendix);
    let room = for_readings(header.most_blocks).map(|most| most.saturating_sub(appendix.bytes()));
    sensors::lock(samples).put(header.start_monotonic_ns, room, &mut appendix);
    appendix.finish()
}

pub(crate) struct Completed<'f> {
    file: &'f Path,
    /// Of the file as far as it is read: a process may still be writing to it.
    bytes: u64,
    appendix: Vec<u8>,
}

impl<'f> Completed<'f> {
    pub(crate) fn of(file: &'f Path, samples: &Mutex<Samples>) -> io::Result<Completed<'f>> {
        let bytes = file.metadata()?.len();
        let header = LiveSpool::open(file).and_then(|spool| spool.header());
        // Without a header, whoever reads it will say what is wrong.
        let appendix = header.map_or_else(|_| Vec::new(), |header| behind(&header, bytes, samples));
        Ok(Completed { file, bytes, appendix })
    }

    /// One that has everything.
    pub(crate) fn as_it_is(file: &'f Path) -> io::Result<Completed<'f>> {
        Ok(Completed { file, bytes: file.metadata()?.len(), appendix: Vec::new() })
    }

    /// To be read in order.
    pub(crate) fn open(&self) -> io::Result<impl Read> {
        Ok(File::open(self.file)?.take(self.bytes).chain(&self.appendix[..]))
    }

    /// To be read at any place.
    pub(crate) fn bytes(&self) -> io::Result<FileBytes> {
        Ok(FileBytes::new(File::open(self.file)?, self.bytes, self.appendix.clone()))
    }
}
