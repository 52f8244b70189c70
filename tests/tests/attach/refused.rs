//! What cannot be attached to, and what is said then.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use ggprof_e2e::controlled::Session;
use ggprof_e2e::{built, published_ggml};

use crate::{attach, ready, said};

fn refused(session: &Session, pid: u32, why: &str) {
    let output = attach(session, pid, &["--duration", "1s"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains(why), "{}", said(&output));
    assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
}

#[test]
fn processes_in_states_that_do_not_allow_it() {
    let (_directory, session) = Session::in_new_place();
    refused(&session, u32::MAX >> 1, "there is no process");
    let mut sleeping = Command::new("sleep").arg("60").spawn().expect("it starts");
    refused(&session, sleeping.id(), "has not loaded ggml");
    let stop = ["-STOP", &sleeping.id().to_string()].map(str::to_owned);
    let _ = Command::new("kill").args(stop).status();
    while !state_of(sleeping.id()).contains("T (stopped)") {}
    refused(&session, sleeping.id(), "is stopped");
    let _ = sleeping.kill();
    while !state_of(sleeping.id()).contains("Z (zombie)") {}
    refused(&session, sleeping.id(), "has ended");
    let _ = sleeping.wait();
}

/// Each starts a program in a way that stands between us; some need root.
#[test]
fn processes_that_belong_to_others() {
    let (_directory, session) = Session::in_new_place();
    for (way, why) in [
        (&["strace", "-qq", "-o", "/dev/null"][..], "is being debugged by process"),
        (&["setpriv", "--reuid=65534", "--clear-groups"], "belongs to another user (65534)"),
        (&["unshare", "--mount"], "does not see all files as you do"),
    ] {
        let Some(mut other) = sleeping_by(way) else { continue };
        refused(&session, other.sleeper, why);
        let _ = Command::new("kill").arg(other.sleeper.to_string()).status();
        let _ = other.started.wait();
    }
}

#[test]
fn programs_that_nothing_can_be_loaded_into() {
    let (_directory, session) = Session::in_new_place();
    let bare = ["-nostdlib", "-static", "-fno-pie", "-no-pie", "-fno-stack-protector"];
    let bits32: Vec<&str> = ["-m32"].into_iter().chain(bare).collect();
    let kinds = [("static", &bare[..], "is linked statically"), ("bits32", &bits32, "is a 32-bit")];
    for (kind, flags, why) in kinds {
        let Some(program) = built::foreign_program("bare.c", kind, "gcc", flags) else { continue };
        // It waits for what is never written.
        let mut program = Command::new(program);
        program.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = program.spawn().expect("it starts");
        wait_for_its_word(&mut program);
        refused(&session, program.id(), why);
        drop(program.stdin.take());
        assert_eq!(program.wait().expect("it ends").code(), Some(5));
    }
}

/// They end as they would have.
#[test]
fn programs_that_would_not_survive_it_or_cannot_be_seen() {
    let Some(shared) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    for (source, why) in [
        ("limits_its_calls.c", "limits what it may ask of the system (seccomp)"),
        ("ends_its_first_thread.c", "the first thread of process"),
    ] {
        let (_directory, session) = Session::in_new_place();
        let program = ready(Command::new(built::host_program(source)).arg(&shared));
        refused(&session, program.id(), why);
        assert_eq!(program.told_to_end().status.code(), Some(0), "{source}");
    }
}

fn wait_for_its_word(program: &mut Child) {
    let mut word = String::new();
    let out = program.stdout.as_mut().expect("a pipe");
    BufReader::new(out).read_line(&mut word).expect("it says something");
}

struct Sleeping {
    started: Child,
    sleeper: u32,
}

/// A program that a command starts; `None` where the command cannot be used here.
fn sleeping_by(command: &[&str]) -> Option<Sleeping> {
    let mut started = Command::new(command[0]);
    // The shell says which process it becomes.
    started.args(&command[1..]).args(["sh", "-c", "echo $$; exec sleep 60"]);
    started.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut started = started.spawn().ok()?;
    let mut line = String::new();
    BufReader::new(started.stdout.take()?).read_line(&mut line).ok()?;
    let sleeper = line.trim().parse().ok();
    if sleeper.is_none() {
        let _ = started.wait();
    }
    Some(Sleeping { started, sleeper: sleeper? })
}

fn state_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}
