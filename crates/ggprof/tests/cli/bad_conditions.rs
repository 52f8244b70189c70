//! Whatever is wrong: one clear sentence, the right exit code, nothing half-written.

use crate::place::{GGPROF, Place, RECORD, Ran, profile};
use expect_test::expect;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// Starts `ggprof` where signals have their usual effect: they may be ignored where the tests run.
fn interruptible(place: &Place, words: &[&str]) -> Command {
    let mut command = Command::new(GGPROF);
    command.args(words).current_dir(place.path(".")).env("TMPDIR", place.path("."));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: the default is always allowed, and the call is one that may stand here.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        });
    }
    command
}

/// Ctrl-C as soon as it is time; how the command ended.
fn interrupted(mut child: Child, is_time: impl Fn() -> bool) -> ExitStatus {
    while child.try_wait().unwrap().is_none() && !is_time() {
        std::thread::yield_now();
    }
    // SAFETY: it may have ended, but has not been forgotten, so its number is still its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    child.wait().unwrap()
}

/// All files below a directory.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries: Vec<_> = fs::read_dir(directory).into_iter().flatten().flatten().collect();
    let below = |entry: &fs::DirEntry| match entry.path().is_dir() {
        true => files_below(&entry.path()),
        false => vec![entry.path()],
    };
    entries.iter().flat_map(below).collect()
}

/// As a batch system may limit them (`ulimit -f`). The system sends a signal, too.
#[test]
fn a_file_larger_than_allowed_is_told_and_leaves_nothing() {
    let place = Place::new();
    place.file("p.json", profile(&vec![RECORD; 1000]));
    let mut command = place.command(&["convert", "p.json", "-o", "out.json"]);
    // SAFETY: the calls are ones that may stand here; the limit is for the child alone.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
            let limit = libc::rlimit { rlim_cur: 10_000, rlim_max: 10_000 };
            libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
            Ok(())
        });
    }
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("out.json") && ran.err.contains("File too large"), "{}", ran.err);
    assert_eq!(place.names(), ["p.json"]);
}

/// Ctrl-C in the middle of writing: neither the file nor a part of it stays.
#[test]
fn an_interrupted_command_leaves_nothing() {
    let place = Place::new();
    let records = vec![RECORD; 60_000];
    place.file("p.json", profile(&records));
    let words = ["convert", "p.json", "-o", "out.json", "-o", "out.txt", "-o", "out.csv"];
    let convert = interruptible(&place, &words).spawn().unwrap();
    let is_part = |name: &String| name.ends_with(".part");
    let status = interrupted(convert, || place.names().iter().any(is_part));
    assert!(!status.success(), "it was too quick to be interrupted");
    assert_eq!(place.names(), ["p.json"]);
}

/// Ctrl-C while the recording is still read, or one that ends too soon: new folders go, those of the user
/// stay.
#[test]
fn interrupted_tables_leave_no_folders() {
    let place = Place::new();
    fs::create_dir_all(place.path("old/events")).unwrap();
    for directory in ["new", "old"] {
        let words = ["convert", "-", "--to", "parquet", "-o", directory];
        let convert = interruptible(&place, &words).stdin(Stdio::piped()).spawn().unwrap();
        let last = place.path(directory).join("findings");
        assert!(!interrupted(convert, || last.exists()).success());
    }
    assert_eq!(place.names(), ["old"]);
    let left: Vec<_> = fs::read_dir(place.path("old")).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Ctrl-C while tables are written: a recording is in all of them or in none, and nothing else is left.
#[test]
fn interrupted_tables_are_complete_or_not_there() {
    let place = Place::new();
    place.file("p.json", profile(&vec![RECORD; 60_000]));
    let words = ["convert", "p.json", "--to", "parquet", "-o", "tables"];
    let convert = interruptible(&place, &words).spawn().unwrap();
    let tables = place.path("tables");
    let status = interrupted(convert, || !files_below(&tables).is_empty());
    match status.success() {
        true => assert_eq!(files_below(&tables).len(), 7),
        false => assert_eq!(place.names(), ["p.json"]),
    }
}

/// Ctrl-C while the page is written: its directory goes with it.
#[test]
fn an_interrupted_view_leaves_nothing() {
    let place = Place::new();
    place.file("p.json", profile(&vec![RECORD; 60_000]));
    let view = interruptible(&place, &["view", "p.json"]).env_remove("DISPLAY").spawn().unwrap();
    let status = interrupted(view, || place.names().len() > 1);
    match status.success() {
        true => assert_eq!(files_below(&place.path(".")).len(), 2),
        false => assert_eq!(place.names(), ["p.json"]),
    }
}

#[test]
fn input_that_gives_nothing() {
    let place = Place::new();
    place.file("empty.json", "");
    place.file("zeros.ggprof", [0; 70_000]);
    place.file("begins.ggprof", [&[0; 70_000], &b"GGPROFSP"[..]].concat());
    place.file("page.html", "<!DOCTYPE html>");
    place.file("text.json", "\x1b[31mhello");
    place.file("numbers.json", "[1, 2, 3]");
    place.file("other.json", "{\"a\": 1}");
    place.file("cut.json", "{\"version\": 3, \"backends\": [{\"id\"");
    place.file("bad.gz", b"\x1f\x8b\x08\x00garbage");
    place.file("bad.zst", b"\x28\xb5\x2f\xfdgarbage");
    fs::create_dir(place.path("directory")).unwrap();
    let mut sentences = String::new();
    for name in [
        "empty.json",
        "zeros.ggprof",
        "begins.ggprof",
        "page.html",
        "text.json",
        "numbers.json",
        "other.json",
        "cut.json",
        "bad.gz",
        "bad.zst",
        "directory",
        "missing.json",
        "empty.json/x",
    ] {
        for arguments in [
            vec![name],
            vec!["report", name, "--chrome-trace", "t.json"],
            vec!["convert", name, "-o", "t.csv"],
        ] {
            let ran = place.run(&arguments);
            ran.failed_with_a_sentence();
            if arguments.len() == 1 {
                sentences.push_str(&ran.err);
            }
        }
    }
    assert!(
        !place
            .names()
            .iter()
            .any(|name| name.contains("t.") && name.starts_with('t') && name != "text.json"),
        "{:?}",
        place.names()
    );
    expect![[r#"
        ggprof: empty.json is empty, so there is nothing to report. The recorded program may have ended before it computed anything; record it again.
        ggprof: zeros.ggprof is empty, so there is nothing to report. The recorded program may have ended before it computed anything; record it again.
        ggprof: begins.ggprof is no recording: it begins with zeros. ggprof reads its own recordings and the JSON of ggml's profiler, also as .gz or .zst; check that this is the file you meant.
        ggprof: page.html is no recording: at byte 0 stands `<!DOCTYPE html>`, which does not belong there. ggprof reads its own recordings and the JSON of ggml's profiler, also as .gz or .zst; check that this is the file you meant.
        ggprof: text.json is no recording: at byte 0 stands `\u{1b}[31mhello`, which does not belong there. ggprof reads its own recordings and the JSON of ggml's profiler, also as .gz or .zst; check that this is the file you meant.
        ggprof: numbers.json is no recording: at byte 0 stands `[1, 2, 3]`, which does not belong there. ggprof reads its own recordings and the JSON of ggml's profiler, also as .gz or .zst; check that this is the file you meant.
        ggprof: other.json is no recording: it is JSON, but without a list "records". ggprof reads its own recordings and the JSON of ggml's profiler, also as .gz or .zst; check that this is the file you meant.
        ggprof: cut.json is no recording: it ends before its list "records". ggprof reads its own recordings and the JSON of ggml's profiler, also as .gz or .zst; check that this is the file you meant.
        ggprof: bad.gz is no recording: its compressed data is damaged from the start. ggprof reads its own recordings and the JSON of ggml's profiler, also as .gz or .zst; check that this is the file you meant.
        ggprof: bad.zst is no recording: its compressed data is damaged from the start. ggprof reads its own recordings and the JSON of ggml's profiler, also as .gz or .zst; check that this is the file you meant.
        ggprof: directory has no recordings (*.ggprof, also .gz or .zst). Name the files that are meant.
        ggprof: missing.json does not exist. Check the path.
        ggprof: empty.json/x does not exist: a part of its path is a file. Check the path.
    "#]].assert_eq(&sentences);
}

#[test]
fn damaged_input_is_reported_as_far_as_it_goes() {
    let place = Place::new();
    let whole = profile(&[RECORD, RECORD, RECORD]);
    let with =
        |part: &str, replacement: &str| profile(&[&RECORD.replace(part, replacement), RECORD]);
    let added = |entry: &str| {
        profile(&[RECORD]).replacen('{', &format!("{{\"ggprof\": {{\"version\": 1, {entry}}}, "), 1)
    };
    let mut invalid_utf8 = with("Qcur-0", "QcurXX").into_bytes();
    let at = invalid_utf8.windows(2).position(|pair| pair == b"XX").unwrap();
    invalid_utf8[at] = 0xff;
    let mut warnings = String::new();
    for (what, content, events) in [
        ("cut off", whole.as_bytes()[..whole.len() - 100].to_vec(), 2),
        ("wrong type", with("100", "\"x\"").into_bytes(), 1),
        ("missing key", with("\"duration_ns\": 50, ", "").into_bytes(), 1),
        ("negative time", with("\"duration_ns\": 50", "\"duration_ns\": -5").into_bytes(), 1),
        ("beyond 64 bits", with("50", "99999999999999999999").into_bytes(), 1),
        ("raw quote", with("Qcur-0", "a\"b").into_bytes(), 1),
        ("invalid UTF-8", invalid_utf8, 2),
        ("nothing recorded", profile(&[]).into_bytes(), 0),
        ("something behind", format!("{}x", profile(&[RECORD])).into_bytes(), 1),
        ("an end before its start", added("\"graph_runs\": [[0, 200, 100]]").into_bytes(), 1),
        (
            "an endless wait",
            added("\"host_tasks\": [[\"Wait\", \"\", 1, 0, 18446744073709551615, 9]]").into_bytes(),
            1,
        ),
    ] {
        place.file("p.json", content);
        let ran = place.run(&["p.json"]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(3), ""), "{what}: {ran:?}");
        assert!(ran.out.contains(&format!("· {events} op")), "{what}: {}", ran.out);
        // A table alone has no place for the sentence.
        let table = place.run(&["p.json", "--by", "layer", "--format", "csv"]);
        assert_eq!(table.code, Some(3), "{what}");
        assert!(table.err.starts_with("ggprof: "), "{what}: {}", table.err);
        let cells = |line: &str| line.matches(',').count();
        let head = table.out.lines().next().map(cells);
        assert!(table.out.lines().all(|line| Some(cells(line)) == head), "{}", table.out);
        let warning: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("! ")).collect();
        assert_eq!(warning.len(), 1, "{what}: {}", ran.out);
        warnings.push_str(&format!("{what}: {}\n", warning[0]));
        // Where no report is printed, the warning goes to standard error.
        let ran = place.run(&["p.json", "--chrome-trace", "t.json"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(3), ""), "{what}: {ran:?}");
        let ran = place.run(&["convert", "p.json", "-o", "t.csv"]);
        assert_eq!(ran.code, Some(3), "{what}: {ran:?}");
        assert_eq!(ran.err.contains("warning"), events > 0, "{what}: {ran:?}");
        assert_eq!(fs::read_to_string(place.path("t.csv")).unwrap().lines().count(), events + 1);
    }
    expect![[r#"
        cut off: ! The file is cut off (it ends at byte 1204): the report covers the records before that. Record again if you need the rest.
        wrong type: ! 1 record was left out because it makes no sense (at byte 123, invalid type: string "x", expected u64). The figures do not count it; record again if it matters.
        missing key: ! 1 record was left out because it makes no sense (at byte 123, it has no duration_ns). The figures do not count it; record again if it matters.
        negative time: ! 1 record was left out because it makes no sense (at byte 123, invalid value: integer `-5`, expected u64). The figures do not count it; record again if it matters.
        beyond 64 bits: ! 1 record was left out because it makes no sense (at byte 123, invalid type: floating point `1e+20`, expected u64). The figures do not count it; record again if it matters.
        raw quote: ! 1 record was left out because it makes no sense (at byte 123, a quotation mark in it is not escaped). The figures do not count it; record again if it matters.
        invalid UTF-8: ! Names in 1 of the records are not valid text (the first: the record at byte 123): they are shown with replacement characters; the figures are complete.
        nothing recorded: ! The recording has no events: check that the program computed something while it ran.
        something behind: ! Parts of the file around the records make no sense (at byte 518 stands `x`, which does not belong there). The figures cover all records that were found.
        an end before its start: ! Parts of the file around the records make no sense (a graph run ends before it begins). The figures cover all records that were found.
        an endless wait: ! Parts of the file around the records make no sense (a task of the host never ends). The figures cover all records that were found.
    "#]].assert_eq(&warnings);
}

#[test]
fn another_programs_file_is_said_to_be_one() {
    let place = Place::new();
    place.file(
        "p.json",
        profile(&[RECORD]).replace("\"profiler\": \"ggml\"", "\"profiler\": \"other\""),
    );
    let ran = place.run(&["p.json"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("! The file says that \"other\" wrote it"), "{}", ran.out);
}

#[test]
fn output_that_cannot_be_written() {
    let place = Place::new();
    place.file("p.json", profile(&[RECORD]));
    place.file("file", "");
    fs::create_dir(place.path("directory")).unwrap();
    let mut sentences = String::new();
    for target in ["missing/t", "file/t", "directory", "/dev/full", "/proc/t", ".."] {
        for arguments in [
            vec!["p.json", "--chrome-trace", target],
            vec!["p.json", "--html-viewer", target],
            vec!["p.json", "-o", target],
            vec!["convert", "p.json", "-o", target],
        ] {
            let ran = place.run(&arguments);
            ran.failed_with_a_sentence();
            if arguments[0] == "convert" {
                sentences.push_str(&ran.err);
            }
        }
    }
    assert_eq!(place.names(), ["directory", "file", "p.json"]);
    expect![[r#"
        ggprof: missing/t cannot be written: its directory does not exist. Create it first.
        ggprof: file/t cannot be written: a part of its path is a file. Check the path.
        ggprof: directory cannot be written: it is a directory. Name a file inside it.
        ggprof: /dev/full cannot be written: the disk is full. Nothing was left behind; free some space or choose another disk.
        ggprof: /proc/t cannot be written: no file can be made in its directory. Choose another place.
        ggprof: .. cannot be written: it is a directory. Name a file inside it.
    "#]].assert_eq(&sentences);

    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = place.command(&["p.json"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("disk is full"));
}

#[test]
fn a_disk_that_fills_leaves_the_old_file_and_no_other() {
    let place = Place::new();
    place.file("p.json", profile(&vec![RECORD; 2000]));
    place.file("old.json", "old");
    // A limit on the size of files fails a write as a full disk does.
    let line = "trap '' XFSZ; ulimit -f 4; exec \"$0\" convert p.json -o old.json";
    let output = Command::new("bash")
        .args(["-c", line, GGPROF])
        .current_dir(place.dir.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let sentence = String::from_utf8(output.stderr).unwrap();
    assert!(sentence.contains("old.json cannot be written"), "{sentence}");
    assert_eq!(fs::read_to_string(place.path("old.json")).unwrap(), "old");
    assert_eq!(place.names(), ["old.json", "p.json"]);
}

#[test]
fn files_are_replaced_whole_and_links_kept() {
    let place = Place::new();
    place.file("p.json", profile(&[RECORD]));
    place.file("real.csv", "old");
    std::os::unix::fs::symlink("real.csv", place.path("link.csv")).unwrap();
    place.run(&["convert", "p.json", "-o", "link.csv"]).succeeded();
    assert!(fs::symlink_metadata(place.path("link.csv")).unwrap().is_symlink());
    assert!(fs::read_to_string(place.path("real.csv")).unwrap().starts_with("type,op,"));
    // Others may read it who may read any file of the user's.
    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode();
    assert_eq!(mode("real.csv"), mode("p.json"));
    assert_eq!(place.names(), ["link.csv", "p.json", "real.csv"]);
}

/// The link stays also where its file is still to be made.
#[test]
fn a_link_to_a_new_file_leads_to_it() {
    let place = Place::new();
    place.file("p.json", profile(&[RECORD]));
    fs::create_dir(place.path("far")).unwrap();
    std::os::unix::fs::symlink("far/next", place.path("link.csv")).unwrap();
    std::os::unix::fs::symlink("real.csv", place.path("far/next")).unwrap();
    place.run(&["convert", "p.json", "-o", "link.csv"]).succeeded();
    assert!(fs::symlink_metadata(place.path("link.csv")).unwrap().is_symlink());
    assert!(fs::read_to_string(place.path("far/real.csv")).unwrap().starts_with("type,op,"));
}

/// Somebody who is in the group of another's file keeps it for that group, and who is not keeps
/// everybody's group out. Only root can try that.
#[test]
fn who_replaces_a_file_of_another_keeps_its_group() {
    let place = Place::new();
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !is_root || Command::new("setpriv").arg("--version").output().is_err() {
        return;
    }
    let copy = place.path("ggprof");
    assert!(Command::new("cp").args([GGPROF.as_ref(), &*copy]).status().unwrap().success());
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    place.file("p.json", profile(&[RECORD]));
    for (groups, found) in [("2000", (1234, 2000, 0o660)), ("2001", (1234, 1234, 0o600))] {
        let file = place.file("old.csv", "old");
        std::os::unix::fs::chown(&file, Some(0), Some(2000)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o660)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=1234", "--regid=1234", &format!("--groups={groups}")]).arg(&copy);
        let output = command.args(["convert", "p.json", "-o", "old.csv"]).current_dir(&place.dir);
        let output = output.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let now = fs::metadata(&file).unwrap();
        assert_eq!((now.uid(), now.gid(), now.mode() & 0o777), found, "in group {groups}");
        fs::remove_file(file).unwrap();
    }
}

#[test]
fn parts_of_commands_have_a_hint() {
    let place = Place::new();
    for (word, meant) in [("snapshot", "ggprof ctl snapshot"), ("export-ops", "ggprof export ops")]
    {
        let ran = place.run(&[word, "p.json"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains(meant), "{ran:?}");
    }
    let help = place.run(&["op-worker", "--help"]).out;
    assert!(help.contains("ops bench") && !help.contains("super::"), "{help}");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let place = Place::new();
    place.file("p.json", profile(&vec![RECORD; 20_000]));
    for arguments in [vec!["p.json"], vec!["convert", "p.json", "-o", "-"]] {
        let mut child = place
            .command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut sentence = String::new();
        child.stderr.take().unwrap().read_to_string(&mut sentence).unwrap();
        assert_eq!((child.wait().unwrap().code(), sentence.as_str()), (Some(0), ""));
    }
}

/// What nobody hears does not change how a command ends.
#[test]
fn a_full_or_closed_standard_error_changes_nothing() {
    let place = Place::new();
    let whole = profile(&[RECORD]);
    place.file("p.json", &whole);
    place.file("cut.json", &whole[..whole.len() - 3]);
    for (words, code) in [
        (&["missing.json"][..], 1),
        (&["convert", "p.json", "-o", "missing/t.csv"], 1),
        (&["convert", "cut.json", "-o", "t.csv"], 3),
        (&["report", "p.json", "--chrome-trace", "t.json"], 0),
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let (reader, closed) = std::io::pipe().unwrap();
        drop(reader);
        for deaf in [Stdio::from(full), Stdio::from(closed)] {
            let status = place.command(words).stderr(deaf).stdout(Stdio::null()).status().unwrap();
            assert_eq!(status.code(), Some(code), "{words:?}");
        }
    }
}

#[test]
fn no_permission() {
    let place = Place::new();
    let file = place.file("p.json", profile(&[RECORD]));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    // Permissions do not stop root, so the command runs as somebody else then.
    let root = fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t");
    // Copied by another process: a file that is open for writing here could be inherited by
    // the child of another test, and then not be run.
    let copy = place.path("ggprof");
    assert!(
        Command::new("cp").args([GGPROF.as_ref(), copy.as_os_str()]).status().unwrap().success()
    );
    let mut command = Command::new(&copy);
    if root {
        command.uid(65534).gid(65534);
    }
    let output = command.arg("p.json").current_dir(place.dir.path()).output().unwrap();
    Ran::of(output).failed_with_a_sentence();
}
