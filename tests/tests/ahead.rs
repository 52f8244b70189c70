//! `ggprof run` extends a recording before the agent needs the space. If it cannot, or has ended,
//! nothing is lost.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ggprof_e2e::controlled::{Running, Session};
use ggprof_e2e::ran::Ran;
use ggprof_e2e::recording::Recording;
use ggprof_e2e::{built, published_ggml};
use ggprof_spool::layout::{BLOCK_BYTES, CHUNK_BLOCKS, HEADER_BYTES};
use ggprof_spool::live::LiveSpool;

/// The workload in small graphs, one after the other.
fn computing(graphs: &str) -> Option<Command> {
    let libraries = published_ggml::libraries(published_ggml::NEWEST)?;
    let mut workload = Command::new(built::workload());
    let shape = ["--threads", "1", "--layers", "2", "--embd", "64", "--prompt", "1"];
    workload.arg(libraries).args(shape).args(["--graphs", graphs]);
    Some(workload)
}

/// How many blocks the agent has taken, and how many the file has.
fn blocks(spool: &Path) -> (u64, u64) {
    let spool = LiveSpool::open(spool).unwrap();
    let taken = spool.header().unwrap().reserved_blocks;
    (taken, (spool.bytes().unwrap() - HEADER_BYTES as u64) / BLOCK_BYTES as u64)
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

#[test]
fn the_program_goes_on_when_nobody_works_ahead_any_more() {
    let Some(program) = computing("100000000") else { return };
    let (_directory, session) = Session::in_new_place();
    let launcher = Running::start(&mut session.recorded(&[], &program));
    let pid = session.wait_for_one(&launcher);
    let spool = session.spools().remove(0);
    wait_until("nobody works ahead", || {
        let (taken, there) = blocks(&spool);
        there >= taken + CHUNK_BLOCKS as u64
    });
    kill(launcher.id());
    let (_, there) = blocks(&spool);
    let enough = there + 2 * CHUNK_BLOCKS as u64;
    wait_until("the recording does not grow", || blocks(&spool).0 >= enough);
    kill(pid);
    wait_until("the program goes on", || !Path::new(&format!("/proc/{pid}")).exists());
    let recording = Recording::read(&spool);
    assert!(recording.damage.len() <= 1, "{:?}", recording.damage);
    assert_eq!(recording.lost(), 0);
    assert!(recording.completed_runs().count() > 1000);
}

#[test]
fn a_limited_recording_is_not_made_longer() {
    let Some(program) = computing("20000") else { return };
    let (_directory, session) = Session::in_new_place();
    let options = ["--max-size", "5MB", "-o", "p.ggprof"];
    let ran = Ran::of(session.recorded(&options, &program).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(session.file("p.ggprof").metadata().unwrap().len() <= 5_000_000);
}

/// `ggprof run` behind lines of a shell script, which is given the session's directory for
/// temporary files.
fn behind(lines: &str, session: &Session, program: &Command) -> Command {
    let run = session.recorded(&[], program);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{lines}\nexec \"$@\""), "sh"]).arg(run.get_program());
    shell.args(run.get_args()).stdin(Stdio::null());
    with_environment_of(shell, &run)
}

fn with_environment_of(mut command: Command, other: &Command) -> Command {
    for (name, value) in other.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// The program ran to its end, and its recording ended before.
fn assert_ran_on(ran: &Ran) {
    assert!(ran.out.contains("done graphs=20000"), "{ran:?}");
    assert!(ran.err.contains("recording stopped: no space left"), "{ran:?}");
    assert!(ran.err.contains("Operations by total time"), "{ran:?}");
}

#[test]
fn a_limit_of_file_sizes_ends_neither_of_them() {
    let Some(program) = computing("20000") else { return };
    let (_directory, session) = Session::in_new_place();
    // In units of 512 bytes: room for the first two chunks and half of the next.
    let ran = behind("ulimit -f 14000", &session, &program).output().unwrap();
    assert_ran_on(&Ran::of(ran));
}

#[test]
fn a_full_disk_ends_neither_of_them() {
    let Some(program) = computing("20000") else { return };
    let (_directory, session) = Session::in_new_place();
    let mount = "mount -t tmpfs -o size=7m none \"$TMPDIR\" || exit 77";
    let inner = behind(mount, &session, &program);
    let mut command = Command::new("unshare");
    command.args(["-U", "-r", "-m"]).arg(inner.get_program()).args(inner.get_args());
    let ran = Ran::of(with_environment_of(command, &inner).output().unwrap());
    if ran.code == Some(77) || ran.err.contains("unshare") {
        eprintln!("not tested: no small disk can be made here: {}", ran.err);
        return;
    }
    assert_ran_on(&ran);
}
