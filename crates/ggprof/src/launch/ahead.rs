//! Extends a recording before its program needs the pages: the kernel takes as much time to make
//! them as recording takes, and the launcher only waits anyway.
//!
//! The file is only ever made longer, by appending zeros: an append never lands on bytes that the
//! agent has used meanwhile. This only saves time. If it is not possible, the agent makes the pages
//! itself.

use super::recorded::hold_stops;
use super::spools::recordings_in;
use ggprof_spool::live::LiveSpool;
use rustix::fs::{fstatfs, fstatvfs};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A program that computes nothing but the smallest graphs fills a chunk in this time.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// Where all processors compute, a look takes the program's time: who needs less is looked at less often.
const LONGEST_PAUSE: Duration = Duration::from_millis(400);
/// Large pieces get large pages, which are cheap to map.
static PIECE: [u8; 1 << 18] = [0; 1 << 18];
/// The last of a disk is the program's.
const LEAST_FREE_BYTES: u64 = 1 << 28;
/// File systems that write a page where it was written before (ext2 to 4, XFS, tmpfs, and
/// overlays, mostly of these): what has room now has it later, too.
const IN_PLACE: [u64; 4] = [0xef53, 0x5846_5342, 0x0102_1994, 0x794c_7630];

/// Works ahead until it is dropped.
pub(crate) struct Ahead {
    over: Arc<AtomicBool>,
    worker: Option<JoinHandle<()>>,
}

impl Ahead {
    /// Recordings appear in this directory.
    pub(crate) fn of(spools: &Path) -> Ahead {
        let (over, spools) = (Arc::new(AtomicBool::new(false)), spools.to_owned());
        let until = over.clone();
        let worker = std::thread::spawn(move || work(&spools, &until));
        Ahead { over, worker: Some(worker) }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(worker) = self.worker.take() {
            worker.thread().unpark();
            let _ = worker.join();
        }
    }
}

fn work(spools: &Path, over: &AtomicBool) {
    let mut pause = SHORTEST_PAUSE;
    while !over.load(Ordering::Relaxed) {
        // A disk that is full for one recording is full for all.
        let Ok(lengthened) = lengthen_all(spools) else { return };
        pause = if lengthened { SHORTEST_PAUSE } else { LONGEST_PAUSE.min(pause * 2) };
        std::thread::park_timeout(pause);
    }
}

/// Whether any needed it.
fn lengthen_all(spools: &Path) -> io::Result<bool> {
    recordings_in(spools).iter().try_fold(false, |any, path| Ok(lengthen(path)? || any))
}

/// An error only where the file cannot be written to.
fn lengthen(path: &PathBuf) -> io::Result<bool> {
    // One whose header is not written yet, or that is gone again.
    let Ok(spool) = LiveSpool::open(path) else { return Ok(false) };
    let mut lengthened = false;
    loop {
        let _no_stop = hold_stops();
        let lacks = spool.bytes_to_append().unwrap_or(0);
        if lacks == 0 {
            return Ok(lengthened);
        }
        let piece = &PIECE[..PIECE.len().min(lacks as usize)];
        let mut file = File::options().append(true).open(path)?;
        if !has_room(&file, piece.len() as u64) {
            return Ok(lengthened);
        }
        file.write_all(piece)?;
        lengthened = true;
    }
}

/// Whether the disk and this process's limits have room for so many bytes more.
fn has_room(file: &File, more: u64) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    // Beyond its limit this process would get a signal.
    let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    let in_place = fstatfs(file).is_ok_and(|system| IN_PLACE.contains(&(system.f_type as u64)));
    let free = fstatvfs(file).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    metadata.len().saturating_add(more) <= limit && in_place && free >= LEAST_FREE_BYTES
}
