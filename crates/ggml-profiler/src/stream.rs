//! Writing to files and to the program's own streams.

use crate::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a file; one that cannot be completed is removed.
pub(crate) fn to_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let failed =
        |error: io::Error| Error::Io(format!("{} cannot be written: {error}", path.display()));
    let file = File::create(path).map_err(failed)?;
    let is_regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
    let mut out = BufWriter::new(file);
    let result = write(&mut out).and_then(|()| out.flush());
    // After a failure the rest of the buffer must not be tried again when it is dropped.
    let _ = out.into_parts();
    if result.is_err() && is_regular {
        // The first error is the one to report.
        let _ = std::fs::remove_file(path);
    }
    result.map_err(failed)
}

/// A stream of the C library, in order with what the program itself prints there.
pub(crate) struct Stream(*mut libc::FILE);

impl Stream {
    /// # Safety
    /// An open stream, for as long as this value lives.
    pub(crate) unsafe fn new(file: *mut libc::FILE) -> Self {
        Self(file)
    }

    /// Standard output.
    pub(crate) fn stdout() -> Self {
        unsafe extern "C" {
            static stdout: *mut libc::FILE;
        }
        // SAFETY: libc's own stream; the code that writes checks for null.
        Self(unsafe { stdout })
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.is_null() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        // SAFETY: the bytes are ours and the stream is open by `new`'s contract.
        let written = unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), self.0) };
        if written == 0 && !bytes.is_empty() {
            return Err(io::Error::last_os_error());
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        // SAFETY: as above.
        match unsafe { libc::fflush(self.0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
