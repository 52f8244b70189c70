//! A bar on standard error while a large recording is read.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// Whatever takes less time needs no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// Passes bytes on and shows how many there were. Indicatif draws on terminals only.
pub(crate) struct Progress<R> {
    input: R,
    length: Option<u64>,
    read: u64,
    since: Instant,
    bar: Option<ProgressBar>,
}

impl<R: Read> Progress<R> {
    pub(crate) fn new(input: R, length: Option<u64>) -> Self {
        Self { input, length, read: 0, since: Instant::now(), bar: None }
    }

    fn show(&mut self) {
        if self.bar.is_none() && self.since.elapsed() >= PATIENCE {
            self.bar = Some(bar(self.length));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.read);
        }
    }
}

fn bar(length: Option<u64>) -> ProgressBar {
    let (bar, template) = match length {
        Some(length) => (ProgressBar::new(length), "reading {wide_bar} {bytes}/{total_bytes}"),
        None => (ProgressBar::new_spinner(), "reading {spinner} {bytes}"),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    // If indicatif does not accept the template, its default is good enough.
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

impl<R: Read> Read for Progress<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buf)?;
        self.read += count as u64;
        self.show();
        Ok(count)
    }
}

impl<R> Drop for Progress<R> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
