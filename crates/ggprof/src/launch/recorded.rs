//! A process that is being recorded, as the launcher sees it.

use super::completed::behind;
use super::holder::Holder;
use super::sensors::Samples;
use super::spools::process_of;
use ggprof_spool::Spool;
use ggprof_spool::covered::covered;
use ggprof_spool::layout::{BLOCK_BYTES, Control, HEADER_BYTES, Window};
use ggprof_spool::live::LiveSpool;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a stop waits for the graph runs that are being computed.
const LONGEST_RUN: Duration = Duration::from_secs(30);
/// How long a thread that has just found the gate open may take to say that it is inside.
const GRACE: Duration = Duration::from_millis(10);

/// While it is held, `ctl` stops no recording: not one byte of a stopped one may change, so
/// whoever makes one longer looks at it and does so under this.
pub(super) fn hold_stops() -> MutexGuard<'static, ()> {
    static STOPS: Mutex<()> = Mutex::new(());
    STOPS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct RecordedProcess {
    spool: LiveSpool,
    holder: Holder,
    pub(crate) file: PathBuf,
    /// In its own namespace.
    pub(crate) pid: u32,
}

/// How it stands.
pub(crate) struct Standing {
    pub(crate) state: &'static str,
    pub(crate) graph_runs: u64,
    pub(crate) bytes: u64,
    /// What is known to be missing, of all kinds.
    pub(crate) losses: u64,
    /// When the oldest graph run in it began; `None` while none is over.
    pub(crate) since_unix_ns: Option<u64>,
    /// When the newest one ended.
    pub(crate) until_unix_ns: Option<u64>,
    pub(crate) program: String,
}

impl RecordedProcess {
    /// The processes that have one of these files and are alive, those too whose recording gave up.
    pub(crate) fn alive(files: &[PathBuf]) -> Vec<RecordedProcess> {
        files.iter().filter_map(|file| RecordedProcess::open(file)).collect()
    }

    fn open(file: &Path) -> Option<RecordedProcess> {
        let process = process_of(file);
        let pid = process.split('.').next()?.parse().ok()?;
        let spool = LiveSpool::open(file).ok()?;
        let header = spool.header().ok()?;
        if header.end_ticks != 0 {
            return None;
        }
        let holder = Holder::find(&file.metadata().ok()?, pid)?;
        Some(RecordedProcess { spool, holder, file: file.to_owned(), pid })
    }

    pub(crate) fn standing(&self) -> io::Result<Standing> {
        let header = self.spool.header()?;
        let state = match (header.control, header.window) {
            _ if header.stop_reason != 0 => "gave-up",
            (Control::Record, _) | (Control::Window, Window::Open) => "recording",
            (Control::Window, Window::NotYet) => "waiting",
            (Control::Stop, _) | (Control::Window, Window::Over) => "stopped",
        };
        let covered = covered(&self.spool)?;
        Ok(Standing {
            state,
            graph_runs: header.graph_runs,
            bytes: self.spool.bytes()?,
            losses: header.losses.iter().fold(0, |sum, &losses| sum.saturating_add(losses)),
            since_unix_ns: covered.map(|(since, _)| since),
            until_unix_ns: covered.map(|(_, until)| until),
            program: header.command,
        })
    }

    pub(super) fn is_recording(&self) -> io::Result<bool> {
        let header = self.spool.header()?;
        Ok(header.control != Control::Stop && header.stop_reason == 0)
    }

    /// Whether nothing will be recorded any more, for lack of space or after faults.
    pub(crate) fn has_given_up(&self) -> bool {
        self.spool.header().is_ok_and(|header| header.stop_reason != 0)
    }

    /// Whether it does: a recording that gave up does not go on.
    pub(crate) fn start(&self) -> io::Result<bool> {
        self.spool.ask(Control::Record)?;
        Ok(!self.has_given_up())
    }

    /// Stops the recording; whether nothing is written any more. Otherwise that will be so
    /// when the graph runs have ended that are being computed.
    pub(crate) fn stop(&self) -> io::Result<bool> {
        let stopping = hold_stops();
        self.spool.ask(Control::Stop)?;
        drop(stopping);
        let asked = Instant::now();
        loop {
            std::thread::sleep(GRACE);
            let quiet = self.spool.header()?.active == 0 || !self.holder.is_alive();
            if quiet || asked.elapsed() > LONGEST_RUN {
                return Ok(quiet);
            }
        }
    }

    /// Gives a recording as it is now, piece by piece.
    pub(crate) fn copy(
        recording: &Path,
        put: impl FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        LiveSpool::open(recording)?.snapshot(put)
    }

    /// Sends the recording as it is now: pieces of it, each behind its place in the file and
    /// its length, the first piece of the file last. What the launcher knows comes behind all others.
    pub(crate) fn send_snapshot(
        &self,
        samples: &Mutex<Samples>,
        to: &mut impl Write,
    ) -> io::Result<()> {
        let mut end = HEADER_BYTES as u64;
        self.spool.snapshot(|offset, piece| {
            if offset == 0 {
                let header = Spool::open(piece).map(|spool| spool.header());
                let appendix = header.map(|header| behind(&header, end, samples));
                let appendix = appendix.unwrap_or_default();
                if !appendix.is_empty() {
                    send(to, end, &appendix)?;
                }
            }
            end = end.max(offset + piece.len() as u64);
            send(to, offset, piece)
        })
    }
}

/// Sends a part of a file, in pieces that whoever receives them has room for.
pub(crate) fn send(to: &mut impl Write, offset: u64, part: &[u8]) -> io::Result<()> {
    for (at, piece) in part.chunks(BLOCK_BYTES).enumerate() {
        to.write_all(&(offset + (at * BLOCK_BYTES) as u64).to_le_bytes())?;
        to.write_all(&(piece.len() as u64).to_le_bytes())?;
        to.write_all(piece)?;
    }
    Ok(())
}
