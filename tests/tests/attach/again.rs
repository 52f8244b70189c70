//! A second attach, where the file is gone that the program has loaded the agent from.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use ggprof_e2e::controlled::Session;
use ggprof_e2e::recording::Recording;
use ggprof_e2e::{built, published_ggml};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::{attach_with, check_every_node, computing_with, is_too_early, said};

/// The agent as it is where no file can be run; it is gone with the result.
fn in_memory() -> (File, PathBuf) {
    let created = memfd_create("libggprof_agent.so", MemfdFlags::CLOEXEC);
    let mut file = File::from(created.expect("memory for a file"));
    file.write_all(&std::fs::read(built::agent()).expect("it was built")).expect("there is room");
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    (file, path.into())
}

/// Attaches with an agent, for a few graphs.
fn record_with(agent: &Path, session: &Session, pid: u32) -> Recording {
    loop {
        let options = ["--duration", "100ms", "-o", "p.ggprof"];
        let output = attach_with(Some(agent), session, pid, &options);
        if output.status.code() == Some(0) {
            return Recording::read(&session.file("p.ggprof"));
        }
        assert!(is_too_early(&said(&output)), "{}", said(&output));
    }
}

fn check(agents: impl Fn(&Session) -> PathBuf) {
    let Some(shared) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let (_directory, session) = Session::in_new_place();
    let program = computing_with(&shared, "1");
    for _ in 0..2 {
        let recording = record_with(&agents(&session), &session, program.id());
        assert!(recording.completed_runs().count() > 0);
        check_every_node(&recording);
        assert!(recording.header.attached);
    }
    let report = session.ggprof(&["report", "p.ggprof", "--by", "memory"]).output();
    let report = String::from_utf8_lossy(&report.expect("ggprof starts").stdout).into_owned();
    assert!(report.contains("ggprof attached to the program while it ran"), "{report}");
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.id())).expect("it runs");
    let is_code = |line: &&str| line.contains(" r-xp ") && line.contains("libggprof_agent");
    assert_eq!(maps.lines().filter(is_code).count(), 1, "another agent was loaded: {maps}");
    assert_eq!(program.told_to_end().status.code(), Some(0));
}

#[test]
fn the_agent_may_have_been_in_memory() {
    check(|_| {
        let (file, path) = in_memory();
        // For as long as ggprof runs.
        std::mem::forget(file);
        path
    });
}

#[test]
fn the_agent_may_have_been_removed() {
    check(|session| {
        let file = session.file("libggprof_agent.so");
        let _ = std::fs::remove_file(&file);
        std::fs::copy(built::agent(), &file).expect("it was built");
        file
    });
}
