//! A bar on standard error while a large recording is read.

use ggprof_trace::formats::Bytes;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Whatever takes less time needs no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// Passes bytes on and shows how many there were. Indicatif draws on terminals only.
pub(crate) struct Progress<R> {
    input: R,
    length: Option<u64>,
    /// From begin to end.
    passed: u64,
    /// From wherever it was needed.
    fetched: AtomicU64,
    since: Instant,
    bar: Mutex<Option<ProgressBar>>,
}

impl<R> Progress<R> {
    /// Of an input that is as long as this, if that is known.
    pub(crate) fn new(input: R, length: Option<u64>) -> Self {
        let (fetched, bar) = (AtomicU64::new(0), Mutex::new(None));
        Self { input, length, passed: 0, fetched, since: Instant::now(), bar }
    }

    fn show(&self, read: u64) {
        if self.since.elapsed() < PATIENCE {
            return;
        }
        // Who finds another thread drawing need not draw.
        let Ok(mut bar) = self.bar.try_lock() else { return };
        let bar = bar.get_or_insert_with(|| bar_of(self.length));
        match self.length {
            // What belongs together is read again, in the order of time.
            Some(length) if read > length => {
                bar.set_message("ordering");
                bar.set_position((read - length).min(length));
            }
            _ => bar.set_position(read),
        }
    }
}

fn bar_of(length: Option<u64>) -> ProgressBar {
    let (bar, template) = match length {
        Some(length) => (ProgressBar::new(length), "{msg} {wide_bar} {bytes}/{total_bytes}"),
        None => (ProgressBar::new_spinner(), "{msg} {spinner} {bytes}"),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar.set_message("reading");
    // If indicatif does not accept the template, its default is good enough.
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

impl<R: Read> Read for Progress<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buf)?;
        self.passed += count as u64;
        self.show(self.passed);
        Ok(count)
    }
}

impl<R: Bytes> Bytes for Progress<R> {
    fn len(&self) -> u64 {
        self.input.len()
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.input.read_exact_at(bytes, offset)?;
        let more = bytes.len() as u64;
        self.show(self.fetched.fetch_add(more, Ordering::Relaxed) + more);
        Ok(())
    }
}

impl<R> Drop for Progress<R> {
    fn drop(&mut self) {
        if let Ok(Some(bar)) = self.bar.get_mut() {
            bar.finish_and_clear();
        }
    }
}
