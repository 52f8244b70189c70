//! Bad input to ggprof itself: a meaningless environment, and files that others have put where
//! ggprof reads and writes. ggprof refuses them with a sentence, reads and writes no file of
//! others, and the program runs as usual.

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use ggprof_e2e::controlled::Session;
use ggprof_e2e::ran::Ran;
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_e2e::{built, published_ggml};
use tempfile::TempDir;

/// Somebody else, on every system.
const NOBODY: u32 = 65534;

/// The workload, ready to compute two graphs.
fn workload() -> Option<Command> {
    let libraries = published_ggml::libraries(published_ggml::NEWEST)?;
    let mut workload = Command::new(built::workload());
    workload.arg(libraries).args(["--graphs", "2", "--threads", "1"]);
    Some(workload)
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Gives a file to somebody else; false, with a sentence, where that is not allowed.
fn give_away(file: &Path) -> bool {
    let given = chown(file, Some(NOBODY), Some(NOBODY)).is_ok();
    if !given {
        eprintln!("not tested: only root can give a file to somebody else");
    }
    given
}

#[test]
fn words_of_the_environment_that_mean_nothing() {
    let long = "9".repeat(100_000);
    for (name, value, sentence) in [
        (
            "GGPROF_MAX_BYTES",
            "plenty",
            "GGPROF_MAX_BYTES is \"plenty\", which is not a valid number",
        ),
        ("GGPROF_FIRST_GRAPH", long.as_str(), "which is not a valid number"),
        ("GGPROF_BUDGET", "-1", "GGPROF_BUDGET is \"-1\", which is not a percentage"),
        ("GGPROF_VULKAN", "all\n", "GGPROF_VULKAN is \"all?\" and not one of sample, group"),
        ("GGPROF_THREADS", "yes", "GGPROF_THREADS is \"yes\" and not one of 0, 1"),
    ] {
        let Some(workload) = workload() else { return };
        let mut program = UnderAgent::of(workload);
        program.command.env(name, value);
        let ran = Ran::of(program.run_well());
        let [said] = &ran.said()[..] else { panic!("{ran:?}") };
        assert!(said.starts_with("ggprof: nothing is recorded: "), "{said}");
        assert!(said.contains(sentence), "{said}");
        assert!(ran.out.contains("done graphs=2"), "{}", ran.out);
        assert!(program.files().is_empty());
    }
}

#[test]
fn words_that_are_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let Some(workload) = workload() else { return };
    let mut program = UnderAgent::of(workload);
    program.command.env("GGPROF_CUDA", std::ffi::OsStr::from_bytes(b"f\xffll"));
    let ran = Ran::of(program.run_well());
    assert!(ran.err.contains("GGPROF_CUDA is \"f\u{fffd}ll\" and not one of"), "{}", ran.err);
}

/// Processes that never use ggml have nothing to say about it.
#[test]
fn a_program_without_ggml_does_not_hear_of_bad_words() {
    let mut program = UnderAgent::new(built::host_program("no_ggml.c"));
    program.command.env("GGPROF_MAX_BYTES", "plenty");
    assert_eq!(program.run().stderr, b"");
}

/// What stands under the name of a recording already, in a directory that all may write to.
#[test]
fn names_that_others_have_taken() {
    let Some(workload) = workload() else { return };
    let words: Vec<&str> = workload.get_args().filter_map(|word| word.to_str()).collect();
    for take in
        ["ln -s victim \"$name\"", "mkfifo \"$name\"", "mkdir \"$name\"", "ln victim \"$name\""]
    {
        let directory = TempDir::new().unwrap();
        let victim = directory.path().join("victim");
        std::fs::write(&victim, "untouched").unwrap();
        let line = format!(
            "cd '{}'; name=ggprof-$$.ggprof; {take}; exec '{}' {}",
            path(directory.path()),
            path(&built::workload()),
            words.join(" ")
        );
        let mut command = Command::new("sh");
        command.args(["-c", &line]).stdin(Stdio::null());
        command.env("LD_PRELOAD", built::agent()).env("TMPDIR", directory.path());
        command.env("GGML_PROFILE", directory.path().join("p.json"));
        command.env("GGPROF_COMMAND", built::ggprof());
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.code, Some(0), "{take}: {ran:?}");
        assert!(directory.path().join("p.json").is_file(), "{take}: {ran:?}");
        assert_eq!(std::fs::read(&victim).unwrap(), b"untouched", "{take}");
    }
}

#[test]
fn a_place_for_recordings_that_is_somebody_elses() {
    let Some(workload) = workload() else { return };
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    for place in [file.join("%p.ggprof"), "/proc/self/mem".into(), "/sys/%p.ggprof".into()] {
        let mut program = UnderAgent::of(copy(&workload));
        program.command.env("GGPROF_SPOOL", &place);
        let ran = Ran::of(program.run_well());
        let [said] = &ran.said()[..] else { panic!("{ran:?}") };
        assert!(said.starts_with("ggprof: nothing is recorded: cannot create "), "{said}");
    }
}

fn copy(command: &Command) -> Command {
    let mut copy = Command::new(command.get_program());
    copy.args(command.get_args());
    copy
}

/// What a program leaves beside its recording: nobody waits for it, follows it or reports it.
#[test]
fn what_is_no_recording_is_not_opened() {
    let Some(workload) = workload() else { return };
    let directory = TempDir::new().unwrap();
    let session = Session::new(directory.path());
    let secret = directory.path().join("secret.ggprof");
    std::fs::write(&secret, "a secret").unwrap();
    let words: Vec<&str> = workload.get_args().filter_map(|word| word.to_str()).collect();
    let line = format!(
        "cd \"$(dirname \"$GGPROF_SPOOL\")\"; mkfifo 1.ggprof; ln -s '{}' 2.ggprof; exec '{}' {}",
        path(&secret),
        path(&built::workload()),
        words.join(" ")
    );
    let mut program = Command::new("sh");
    program.args(["-c", &line]);
    let ran = Ran::of(session.recorded(&[], &program).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("graph runs  2\n"), "{}", ran.err);
    assert_eq!(ran.err.matches("ggprof: ").count(), 1, "{}", ran.err);
}

#[test]
fn recordings_of_others_are_not_named() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("ggprof-999999998.ggprof");
    let closed = directory.path().join("ggprof-closed");
    std::fs::write(&file, "").unwrap();
    std::fs::create_dir(&closed).unwrap();
    std::fs::write(closed.join("999999998.ggprof"), "").unwrap();
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
    let doctor = || {
        let mut doctor = Command::new(built::ggprof());
        doctor.arg("doctor").env("TMPDIR", directory.path()).env_remove("LD_PRELOAD");
        Ran::of(doctor.output().unwrap()).out
    };
    assert!(doctor().contains("999999998.ggprof and "), "{}", doctor());
    if give_away(&file) && give_away(&closed) {
        assert!(!doctor().contains("999999998.ggprof"), "{}", doctor());
    }
}

/// A directory for sockets that is not the user's own, or a link to one.
#[test]
fn sockets_of_others_are_not_used() {
    let Some(workload) = workload() else { return };
    let directory = TempDir::new().unwrap();
    let session = Session::new(directory.path());
    let place = directory.path().join("runtime/ggprof");
    let elsewhere = directory.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::set_permissions(&elsewhere, PermissionsExt::from_mode(0o700)).unwrap();
    let refuses = |how: &str| {
        let ran = Ran::of(session.recorded(&[], &workload).output().unwrap());
        assert_eq!(ran.code, Some(0), "{how}: {ran:?}");
        let sentence = "`ggprof ctl` will not reach this recording: ";
        assert!(ran.err.contains(sentence), "{how}: {}", ran.err);
        assert!(ran.err.contains("is not a directory that only you can open"), "{how}");
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0, "{how}");
        // Others of this user's programs may be recorded meanwhile.
        let status = session.ctl(&["status"]);
        assert!(matches!(status.status.code(), Some(0 | 1)), "{how}: {status:?}");
    };
    symlink(&elsewhere, &place).unwrap();
    refuses("a link");
    std::fs::remove_file(&place).unwrap();
    std::fs::create_dir(&place).unwrap();
    std::fs::set_permissions(&place, PermissionsExt::from_mode(0o700)).unwrap();
    if give_away(&place) {
        refuses("somebody else's");
    }
}
