//! How an attach ends that nobody ends as intended.

use std::path::PathBuf;
use std::process::Command;

use ggprof_e2e::controlled::{Running, Session};
use ggprof_e2e::published_ggml;
use ggprof_e2e::recording::Recording;
use ggprof_spool::layout::Control;
use ggprof_spool::live::LiveSpool;

use crate::{Ready, begun_when_loaded, check_every_node, computing_with};

fn kill(signal: &str, pid: u32) {
    let killed = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(killed.expect("there is a kill").success());
}

/// A program that is recorded and has computed some graphs.
fn recorded(session: &Session) -> Option<(Ready, Running)> {
    let program = computing_with(&published_ggml::libraries(published_ggml::NEWEST)?, "1");
    let attached = begun_when_loaded(session, program.id());
    session.wait_for_one(&attached);
    Some((program, attached))
}

/// As by somebody who closes a terminal.
#[test]
fn a_signal_of_the_terminal_ends_the_recording() {
    for signal in ["-HUP", "-QUIT"] {
        let (_directory, session) = Session::in_new_place();
        let Some((program, attached)) = recorded(&session) else { return };
        let ggprof = PathBuf::from(format!("/proc/{}/stat", attached.id()));
        kill(signal, attached.id());
        while !std::fs::read_to_string(&ggprof).unwrap_or_default().contains(") Z") {}
        let (code, words) = attached.end();
        assert_eq!(code, Some(0), "{signal}: {words}");
        assert_eq!(program.told_to_end().status.code(), Some(0));
        check_every_node(&Recording::read(&session.file("p.ggprof")));
    }
}

/// The program goes on, and nothing more is recorded of it.
#[test]
fn a_killed_attach_ends_the_recording() {
    let (_directory, session) = Session::in_new_place();
    let Some((program, attached)) = recorded(&session) else { return };
    kill("-KILL", attached.id());
    let recordings = session.spools();
    let control =
        || LiveSpool::open(&recordings[0]).and_then(|spool| spool.header()).unwrap().control;
    while control() != Control::Stop {}
    assert_eq!(program.told_to_end().status.code(), Some(0));
    check_every_node(&Recording::read(&recordings[0]));
}
