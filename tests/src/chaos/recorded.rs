//! What a run's recordings hold, added up.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ggprof_spool::Spool;
use ggprof_spool::layout::{Covered, CoveredHow};

use super::arrangement::Place;
use crate::built;
use crate::recording::{Recording, Split};

/// The recordings of one run.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) files: usize,
    /// Graph runs with their end.
    pub(super) runs: usize,
    /// Nodes that were computed, of backends whose ops can be seen. A profile does not tell.
    pub(super) nodes: Option<usize>,
    /// Files with a loss, a stop, or a missing end.
    pub(super) with_losses: usize,
    pub(super) stopped: usize,
    pub(super) without_end: usize,
    /// Backends whose ops cannot be seen.
    pub(super) unseen: usize,
    /// What is wrong with them.
    pub(super) faults: Vec<String>,
    /// What their reports say is missing.
    pub(super) said: Vec<String>,
}

impl Recorded {
    /// Those that were delivered, or what a killed launcher left.
    pub(super) fn of(place: &Place) -> Recorded {
        let mut recorded = Recorded::default();
        let mut files = recordings_in(&place.at("files"));
        if files.is_empty() {
            let temporary = place.at("temporary");
            let places = std::fs::read_dir(&temporary).into_iter().flatten().flatten();
            files = places.flat_map(|entry| recordings_in(&entry.path())).collect();
            files.extend(recordings_in(&temporary));
        }
        for file in files {
            let is_copy = file.file_name().is_some_and(|n| n.to_string_lossy().starts_with("snap"));
            recorded.report(&file);
            match file.extension() {
                _ if is_copy => {}
                Some(extension) if extension == "json" => recorded.add_profile(&file),
                _ => recorded.add_file(&file),
            }
        }
        recorded
    }

    fn add_file(&mut self, file: &Path) {
        let bytes = std::fs::read(file).unwrap_or_default();
        // Killed when it had made the file, or room in it, and nothing else.
        if bytes.iter().all(|&byte| byte == 0) {
            return;
        }
        self.files += 1;
        match Spool::open(&bytes) {
            Ok(_) => self.add(&Recording::from_bytes(&bytes)),
            Err(reason) => self.faults.push(format!("{}: {reason}", file.display())),
        }
    }

    /// What `GGML_PROFILE` asks for.
    fn add_profile(&mut self, file: &Path) {
        self.files += 1;
        let text = std::fs::read(file).unwrap_or_default();
        match serde_json::from_slice::<serde_json::Value>(&text) {
            Ok(profile) => {
                self.runs += profile["ggprof"]["graph_runs"].as_array().map_or(0, Vec::len);
            }
            Err(reason) => self.faults.push(format!("{}: {reason}", file.display())),
        }
    }

    fn add(&mut self, recording: &Recording) {
        let header = &recording.header;
        self.runs += recording.completed_runs().count();
        self.with_losses += usize::from(recording.lost() > 0);
        self.stopped += usize::from(header.stop_reason != 0);
        self.without_end += usize::from(header.end_ticks == 0);
        self.faults.extend(recording.damage.iter().map(ToString::to_string));
        let ops = recording.coverage.iter().filter(|one| one.what == Covered::Ops as u16);
        self.unseen += ops.filter(|one| one.how == CoveredHow::Not as u8).count();
        let splits = recording.splits.values().filter(|split| is_seen(recording, split));
        let nodes: usize = splits.map(|split| recording.recorded_positions(split).len()).sum();
        self.nodes = Some(self.nodes.unwrap_or(0) + nodes);
        if recording.lost() == 0 && header.reused_blocks == 0 {
            self.faults.extend(contradiction(recording));
        }
    }

    /// Reads a file as users do.
    fn report(&mut self, file: &Path) {
        let mut command = Command::new(built::ggprof());
        let output = command.arg("report").arg(file).stdin(Stdio::null()).output();
        let output = output.expect("ggprof starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        self.said.extend(text.lines().filter(|line| line.starts_with('!')).map(str::to_owned));
        self.said.extend(errors.lines().map(str::to_owned));
        // 1: nothing to report, which is said.
        if !matches!(output.status.code(), Some(0 | 1 | 3)) {
            self.faults.push(format!("its report ended with {}: {errors}", output.status));
        }
    }
}

/// Whether the split ran on a backend whose ops are seen one by one.
fn is_seen(recording: &Recording, split: &Split) -> bool {
    let ways = [CoveredHow::GotSlot, CoveredHow::AbortCallback, CoveredHow::InlineHook];
    let mut ops = recording.coverage.iter().filter(|covered| {
        covered.what == Covered::Ops as u16 && covered.backend == split.begin.backend
    });
    ops.any(|covered| ways.iter().any(|way| covered.how == *way as u8))
}

/// A graph run that ended has all its splits, and these have all their nodes.
fn contradiction(recording: &Recording) -> Option<String> {
    for (run, end) in recording.completed_runs().filter(|(_, end)| end.status == 0) {
        let splits: Vec<&Split> = recording.splits_of(run.begin.run).collect();
        if splits.len() != end.splits as usize {
            let (has, run) = (splits.len(), run.begin.run);
            return Some(format!("run {run} has {has} splits of {}", end.splits));
        }
        for split in splits.into_iter().filter(|split| is_seen(recording, split)) {
            let (all, seen) =
                (recording.working_positions(split), recording.recorded_positions(split));
            if !all.is_subset(&seen) {
                let missing = all.difference(&seen).count();
                return Some(format!("run {} lacks {missing} nodes", run.begin.run));
            }
        }
    }
    None
}

fn recordings_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    let is_recording = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.contains(".ggprof") || name.ends_with(".json")
    };
    files.retain(|file| file.is_file() && is_recording(file));
    files.sort();
    files
}
