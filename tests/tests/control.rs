//! `ggprof ctl`, as users run it on running programs.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use ggprof_e2e::controlled::{Running, Session};
use ggprof_e2e::{built, published_ggml};
use tempfile::TempDir;

fn session() -> (TempDir, Session) {
    let directory = TempDir::new().unwrap();
    let session = Session::new(directory.path());
    (directory, session)
}

/// A program that computes for as long as it is let.
fn endless() -> Option<Command> {
    let libraries = published_ggml::libraries(published_ggml::NEWEST)?;
    let mut workload = Command::new(built::workload());
    workload.arg(libraries).args(["--threads", "1", "--layers", "2", "--graphs", "100000000"]);
    Some(workload)
}

/// How many graph runs `ggprof report` finds in a whole recording.
fn runs(session: &Session, file: &str) -> usize {
    let report = session.ggprof(&["report", file]).output().unwrap();
    assert_eq!(report.status.code(), Some(0), "{report:?}");
    let text = String::from_utf8_lossy(&report.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("graph runs  "));
    line.expect("a number").replace(',', "").parse().unwrap()
}

#[test]
fn stop_means_that_no_byte_is_written_any_more() {
    let Some(program) = endless() else { return };
    let (_directory, session) = session();
    let running = Running::start(&mut session.recorded(&["-o", "p.ggprof"], &program));
    let pid = session.wait_for(1)[0];
    session.ctl_well(&["stop"]);
    let spool = &session.spools()[0];
    let look = || (std::fs::read(spool).unwrap(), spool.metadata().unwrap().modified().unwrap());
    let stopped = look();
    let computed = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let before = computed();
    std::thread::sleep(Duration::from_millis(300));
    assert!(before != computed(), "the program goes on");
    assert!(look() == stopped, "the recording does not");
    let line = session.ctl_well(&["status"]);
    assert!(line.contains("  stopped  "), "{line}");

    // And it can go on again.
    session.ctl_well(&["start", &pid.to_string()]);
    session.wait_for(1);
    session.ctl_well(&["snapshot", "-o", "two.ggprof"]);
    session.ctl_well(&["stop"]);
    let more = look();
    let (code, said) = running.end();
    assert_eq!(code, Some(143), "{said}");
    assert!(more.0.len() >= stopped.0.len() && more.0 != stopped.0);
    assert!(runs(&session, "p.ggprof") >= runs(&session, "two.ggprof"));
    assert!(session.sockets().is_empty());
}

#[test]
fn snapshots_disturb_nothing_and_are_whole() {
    let Some(program) = endless() else { return };
    let (_directory, session) = session();
    // Large enough that a copy is made before all of it is used again, also on a busy machine.
    let options = ["--max-size", "32MiB", "-o", "p.ggprof"];
    let running = Running::start(&mut session.recorded(&options, &program));
    session.wait_for(1);
    // From its first blocks on until they are used again, and beyond.
    for _ in 0..12 {
        session.ctl_well(&["snapshot", "-o", "now.ggprof"]);
        assert!(runs(&session, "now.ggprof") > 0);
        let report = session.ggprof(&["report", "now.ggprof"]).output().unwrap();
        let report = String::from_utf8_lossy(&report.stdout).into_owned();
        assert!(report.contains("Taken while the program was running"), "{report}");
    }
    let summary = session.ctl_well(&["snapshot"]);
    assert!(summary.contains("Operations by total time"), "{summary}");
    running.end();
    assert!(runs(&session, "p.ggprof") > 0);
}

#[test]
fn several_programs_are_listed_and_told_apart() {
    let Some(program) = endless() else { return };
    let (_directory, session) = session();
    let nothing = session.ctl(&["stop"]);
    assert_eq!(nothing.status.code(), Some(1));
    let said = String::from_utf8_lossy(&nothing.stderr).into_owned();
    assert!(said.starts_with("ggprof: nothing is being recorded"), "{said}");

    let one = Running::start(&mut session.recorded(&["-o", "one.ggprof"], &program));
    let other = Running::start(&mut session.recorded(&["-o", "other.ggprof"], &program));
    let pids = session.wait_for(2);
    let refused = session.ctl(&["stop"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(pids.iter().all(|pid| said.contains(&pid.to_string())), "{said}");

    session.ctl_well(&["stop", &pids[0].to_string()]);
    // The launcher's number names its program as well.
    let of_one = session.ctl_well(&["status", &one.id().to_string()]);
    let of_other = session.ctl_well(&["status", &other.id().to_string()]);
    assert_ne!(of_one.contains("  stopped  "), of_other.contains("  stopped  "));
    let unknown = session.ctl(&["stop", "1"]);
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(said.contains("process 1 is not recorded"), "{said}");
}

#[test]
fn a_window_that_is_not_open_yet_can_be_opened() {
    let Some(program) = endless() else { return };
    let (_directory, session) = session();
    let options = ["--start-after", "1h", "-o", "p.ggprof"];
    let running = Running::start(&mut session.recorded(&options, &program));
    while !String::from_utf8_lossy(&session.ctl(&["status"]).stdout).contains("  waiting  ") {
        std::thread::sleep(Duration::from_millis(20));
    }
    session.ctl_well(&["start"]);
    session.wait_for(1);
    running.end();
    assert!(runs(&session, "p.ggprof") > 0);
}

#[test]
fn only_the_user_reaches_the_socket() {
    let Some(program) = endless() else { return };
    let (directory, session) = session();
    let running = Running::start(&mut session.recorded(&[], &program));
    session.wait_for(1);
    let place = directory.path().join("runtime/ggprof");
    assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    running.end();

    // A directory that others can look into is not used; recording works all the same.
    std::fs::set_permissions(&place, PermissionsExt::from_mode(0o755)).unwrap();
    let mut short = Command::new(program.get_program());
    short.arg(program.get_args().next().unwrap()).args(["--graphs", "2", "--threads", "1"]);
    let ran = session.recorded(&[], &short).output().unwrap();
    assert_eq!(ran.status.code(), Some(0));
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains("`ggprof ctl` will not reach this recording"), "{said}");
    assert!(String::from_utf8_lossy(&ran.stdout).contains("graph runs  2\n"));
}

#[test]
fn a_launcher_that_was_killed_leaves_nothing_in_the_way() {
    let Some(program) = endless() else { return };
    let (directory, session) = session();
    let running = Running::start(&mut session.recorded(&[], &program));
    session.wait_for(1);
    running.end();
    let place = directory.path().join("runtime/ggprof");
    let stale = place.join("1.sock");
    drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
    let status = session.ctl(&["status"]);
    assert_eq!(status.status.code(), Some(1));
    assert!(!stale.exists());
}
