//! `ggprof ctl`, as users run it on running programs.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ggprof_e2e::controlled::{Running, Session, endless};

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
    let (_directory, session) = Session::in_new_place();
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
    let (_directory, session) = Session::in_new_place();
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
        assert!(report.contains("a snapshot of a running program"), "{report}");
    }
    let summary = session.ctl_well(&["snapshot"]);
    assert!(summary.contains("Operations by total time"), "{summary}");
    running.end();
    assert!(runs(&session, "p.ggprof") > 0);
}

#[test]
fn several_programs_are_listed_and_told_apart() {
    let Some(program) = endless() else { return };
    let (_directory, session) = Session::in_new_place();
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
    let (_directory, session) = Session::in_new_place();
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
fn a_paused_program_is_recorded_from_its_start_on() {
    let Some(program) = endless() else { return };
    let (_directory, session) = Session::in_new_place();
    let options = ["--paused", "-o", "p.ggprof"];
    let running = Running::start(&mut session.recorded(&options, &program));
    let status = || String::from_utf8_lossy(&session.ctl(&["status"]).stdout).into_owned();
    while status().is_empty() {
        std::thread::sleep(Duration::from_millis(20));
    }
    // It computes meanwhile.
    std::thread::sleep(Duration::from_millis(300));
    let line = status();
    assert!(line.contains("  stopped  0 graph runs  "), "{line}");
    let of_json = || -> serde_json::Value {
        let text = session.ctl_well(&["status", "--format", "json"]);
        let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(all.as_array().map(Vec::len), Some(1), "{text}");
        all[0].clone()
    };
    let asleep = of_json();
    assert_eq!((&asleep["state"], &asleep["graph_runs"]), (&"stopped".into(), &0.into()));
    assert!(asleep["since_unix_ns"].is_null() && asleep["until_unix_ns"].is_null(), "{asleep}");
    session.ctl_well(&["start"]);
    let pid = session.wait_for(1)[0];
    // A graph run is there when it is over.
    let mut awake = of_json();
    while awake["until_unix_ns"].is_null() {
        awake = of_json();
    }
    assert_eq!((&awake["pid"], &awake["program"]), (&pid.into(), &"ggprof-workload".into()));
    assert_eq!((&awake["state"], &awake["losses"]), (&"recording".into(), &0.into()));
    assert!(awake["graph_runs"].as_u64() > Some(0) && awake["bytes"].as_u64() > Some(0));
    let moment = |key: &str| awake[key].as_u64().expect("a moment");
    assert!(moment("since_unix_ns") < moment("until_unix_ns"), "{awake}");
    running.end();
    assert!(runs(&session, "p.ggprof") > 0);
    // Graph runs before the start are known to be missing.
    let report = session.ggprof(&["report", "p.ggprof"]).output().unwrap();
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.contains("graph runs before the first"), "{report}");
}

/// From the begin of the oldest graph run to the end of the newest, also if older ones made room.
#[test]
fn the_time_covered_is_that_of_the_runs_in_the_recording() {
    let Some(program) = endless() else { return };
    for limit in [&[][..], &["--max-size", "4MiB"]] {
        let (_directory, session) = Session::in_new_place();
        let options = [limit, &["-o", "p.ggprof"]].concat();
        let running = Running::start(&mut session.recorded(&options, &program));
        session.wait_for(1);
        std::thread::sleep(Duration::from_millis(1500));
        session.ctl_well(&["stop"]);
        let status = session.ctl_well(&["status", "--format", "json"]);
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        running.end();
        let words = ["report", "p.ggprof", "--by", "run", "--format", "json"];
        let report = session.ggprof(&words).output().unwrap().stdout;
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        let runs = report["runs"].as_array().expect("runs");
        let number = |run: &serde_json::Value, key: &str| run[key].as_u64().expect("a number");
        let first = number(&runs[0], "clock_unix_ns");
        let ends = runs.iter().map(|run| number(run, "clock_unix_ns") + number(run, "wall_ns"));
        let last = ends.max().unwrap();
        for (key, expected) in [("since_unix_ns", first), ("until_unix_ns", last)] {
            let found = number(&status[0], key);
            // The reader's clock follows small corrections of the system's later.
            assert!(found.abs_diff(expected) < 2_000_000, "{key} {found}, {expected}: {limit:?}");
        }
    }
}

#[test]
fn a_program_that_nobody_started_the_recording_of() {
    let Some(program) = endless() else { return };
    let (_directory, session) = Session::in_new_place();
    let mut short = Command::new(program.get_program());
    short.arg(program.get_args().next().unwrap()).args(["--graphs", "2", "--threads", "1"]);
    let ran = session.recorded(&["--paused"], &short).output().unwrap();
    assert_eq!(ran.status.code(), Some(0));
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains("graph runs  0\n"), "{said}");
    assert!(
        said.contains(
            "! Nothing was recorded: the program ended before the recording was to begin"
        ),
        "{said}"
    );
}

#[test]
fn only_the_user_reaches_the_socket() {
    let Some(program) = endless() else { return };
    let (directory, session) = Session::in_new_place();
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
    assert!(said.contains("graph runs  2\n"), "{said}");
}

/// Whatever comes on the socket, a sentence is the answer, and the next one is served.
#[test]
fn hostile_requests_get_a_sentence() {
    let Some(program) = endless() else { return };
    let (_directory, session) = Session::in_new_place();
    let _running = Running::start(&mut session.recorded(&["-o", "p.ggprof"], &program));
    let pid = session.wait_for(1)[0];
    let sockets = session.sockets();
    let [socket] = &sockets[..] else { panic!("{sockets:?}") };
    let mut noise = 1_u64;
    let mut noisy = || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        noise.to_le_bytes().to_vec()
    };
    let mut requests: Vec<Vec<u8>> = (0..100).map(|_| [noisy(), b"\n".to_vec()].concat()).collect();
    let texts =
        ["", " ", "snapshot", "stop 0", "start -1", "snapshot 99999999999999999999", "stat us"];
    requests.extend(texts.map(|text| format!("{text}\n").into_bytes()));
    requests.push(format!("sna\0pshot {pid}\n").into_bytes());
    requests.push(vec![b'a'; 100]);
    for request in requests {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.write_all(&request).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.len() > 10 && !answer.starts_with("ok"), "{request:?}: {answer}");
    }
    // Longer than any request, without an end, and nobody who waits for the answer.
    _ = UnixStream::connect(socket).unwrap().write_all(&vec![b'a'; 1 << 20]);
    assert!(session.ctl_well(&["status"]).contains("  recording  "));
}

#[test]
fn a_launcher_that_was_killed_leaves_nothing_in_the_way() {
    let Some(program) = endless() else { return };
    let (directory, session) = Session::in_new_place();
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

/// A command in a PID namespace of its own, as containers have; with its own /proc or without.
/// `None`, with a sentence, where that is not allowed.
fn in_container(command: &Command, own_proc: bool) -> Option<Command> {
    let mut words = vec!["--pid", "--fork", "--kill-child"];
    words.extend(own_proc.then_some("--mount-proc"));
    let allowed = Command::new("unshare").args(&words).arg("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("not tested: PID namespaces are not allowed here");
        return None;
    }
    let mut container = Command::new("unshare");
    container.args(words).arg(command.get_program()).args(command.get_args());
    let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    container.envs(variables).stdin(Stdio::null());
    command.get_current_dir().into_iter().for_each(|place| _ = container.current_dir(place));
    Some(container)
}

/// Ends the containers that a process started, or is.
struct Container(Running);

impl Container {
    fn start(command: &mut Command) -> Container {
        Container(Running::start(command))
    }
}

impl Drop for Container {
    /// Who waits for a container ignores requests to end.
    fn drop(&mut self) {
        let id = self.0.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let children = children.unwrap_or_default();
        let _ = Command::new("kill").arg("-KILL").args(children.split_whitespace()).status();
    }
}

/// Process numbers mean nothing outside of a container, and the launcher of each is number 1.
#[test]
fn containers_that_share_a_directory_are_all_reached() {
    let Some(program) = endless() else { return };
    let (_directory, session) = Session::in_new_place();
    let recorded = |file: &str| session.recorded(&["-o", file], &program);
    let Some(mut one) = in_container(&recorded("one.ggprof"), true) else { return };
    let Some(mut other) = in_container(&recorded("other.ggprof"), false) else { return };
    let (_one, _other) = (Container::start(&mut one), Container::start(&mut other));
    session.wait_for(2);
    assert_eq!(session.sockets().len(), 2);
    // And a program in a container is reached that was started from outside of it.
    let Some(inside) = in_container(&program, true) else { return };
    let _third = Container::start(&mut session.recorded(&["-o", "third.ggprof"], &inside));
    session.wait_for(3);
}

/// Launchers that are not what they seem cost a sentence and a limited time.
#[test]
fn a_launcher_that_does_not_answer_is_named() {
    let (directory, session) = Session::in_new_place();
    let place = directory.path().join("runtime/ggprof");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::set_permissions(&place, PermissionsExt::from_mode(0o700)).unwrap();
    let answers: [(&[u8], &str); 4] = [
        (b"", "does not answer"),
        (b"ok\nnonsense\n", "another version"),
        (&[b'x'; 5000], "does not answer"),
        (b"ok\n\xff\xfe", "gave no complete answer"),
    ];
    for (answer, sentence) in answers {
        let socket = place.join("1-1-hostile.sock");
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = std::io::Write::write_all(&mut stream, answer);
                if !answer.is_empty() {
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                }
                // One that never says anything is left after a while.
                let mut rest = Vec::new();
                let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
            });
            let status = session.ctl(&["status"]);
            assert_eq!(status.status.code(), Some(1));
            let said = String::from_utf8_lossy(&status.stderr).into_owned();
            assert!(said.contains("cannot find out what is being recorded"), "{said}");
            assert!(said.contains(sentence), "{said}");
        });
    }
}

/// While the copy of a large recording still comes: neither the copy nor what is made of it stays.
#[test]
fn an_interrupted_snapshot_leaves_nothing() {
    let (directory, session) = Session::in_new_place();
    let place = directory.path().join("runtime/ggprof");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::set_permissions(&place, PermissionsExt::from_mode(0o700)).unwrap();
    let listener = UnixListener::bind(place.join("1-1-slow.sock")).unwrap();
    let copy = [0_u64.to_le_bytes(), 8_u64.to_le_bytes(), [7; 8]].concat();
    let answers = [b"7 recording 1 4096 0 - - program\n".to_vec(), copy];
    // Ends with the tests if nobody asks it.
    std::thread::spawn(move || {
        let answered = answers.map(|answer| {
            let (stream, _) = listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            stream.read_line(&mut String::new()).unwrap();
            stream.get_mut().write_all(&[b"ok\n", &answer[..]].concat()).unwrap();
            // Of the list nothing is missing.
            (answer[0] == 0).then_some(stream)
        });
        // The rest of the copy never comes.
        let [_, copying] = answered;
        _ = copying.unwrap().read_to_end(&mut Vec::new());
    });
    let names = || -> Vec<_> {
        let entries = std::fs::read_dir(directory.path().join("temporary")).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    let snapshot = Running::start(&mut session.ggprof(&["ctl", "snapshot", "7", "-o", "s.json"]));
    let started = Instant::now();
    while names().is_empty() {
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", snapshot.end());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(snapshot.end().0, None);
    assert!(names().is_empty(), "{:?}", names());
    assert!(std::fs::read_dir(session.file("")).unwrap().next().is_none());
}
