//! `GGML_PROFILE` with the environment that `ggprof env` prints: each value, and whatever can be
//! wrong with it. The program and its exit status are never affected.

use std::path::{Path, PathBuf};
use std::process::Command;

use ggprof_e2e::ran::{Ran, names_in};
use ggprof_e2e::{built, published_ggml};
use serde_json::Value;
use tempfile::TempDir;

/// A program in a shell that has evaluated `ggprof env`, in a directory of its own that
/// is also the one for temporary files.
struct Profiled {
    directory: TempDir,
    command: Command,
}

impl Profiled {
    fn new(profile: &str, program: &Path) -> Option<Self> {
        let libraries = published_ggml::libraries(published_ggml::NEWEST)?;
        let directory = TempDir::new().unwrap();
        let mut command = Command::new("sh");
        let script = r#"eval "$("$0" env)"; exec "$@""#;
        command.args(["-c", script]).arg(built::ggprof()).arg(program).arg(libraries);
        command.current_dir(directory.path()).env("TMPDIR", directory.path());
        command.env_remove("LD_PRELOAD").env("GGML_PROFILE", profile);
        Some(Self { directory, command })
    }

    /// The workload, one thread.
    fn workload(profile: &str, graphs: &str) -> Option<Self> {
        let mut run = Self::new(profile, &built::workload())?;
        run.command.args(["--threads", "1", "--graphs", graphs]);
        Some(run)
    }

    fn run(&mut self) -> Ran {
        Ran::of(self.command.output().unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Files that are there afterwards.
    fn names(&self) -> Vec<String> {
        names_in(self.directory.path())
    }

    /// The recording that was left because nothing could be made of it, opened.
    fn kept(&self) -> String {
        let names = self.names();
        let name = names.iter().find(|name| name.ends_with(".ggprof")).expect("a recording");
        let report = Command::new(built::ggprof()).arg("report").arg(self.file(name)).output();
        Ran::of(report.unwrap()).out
    }
}

fn graph_runs(file: &Path) -> Vec<u64> {
    let profile: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let runs = profile["ggprof"]["graph_runs"].as_array().unwrap().clone();
    runs.iter().map(|run| run[0].as_u64().unwrap()).collect()
}

#[test]
fn a_summary_on_standard_output() {
    for value in ["1", "stdout", ""] {
        let Some(mut run) = Profiled::workload(value, "5") else { return };
        let ran = run.run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.said(), [""; 0]);
        assert!(ran.out.contains("ggprof: ggprof-workload (process "), "{ran:?}");
        assert!(ran.out.contains("graph runs  5\n"), "{ran:?}");
        assert!(!ran.out.contains("\n!"), "{ran:?}");
        assert!(ran.out.contains("done graphs=5"), "{ran:?}");
        assert_eq!(run.names(), [""; 0], "nothing is left behind");
    }
}

#[test]
fn files_by_their_name() {
    for (value, begins) in [
        ("p.json", "{\n  \"version\": 3"),
        ("p.txt", "=== Profiling Summary ==="),
        ("p.csv", "type,op,"),
        ("p.html", "<!DOCTYPE html>"),
        ("profile", "{\n  \"version\": 3"),
        ("a name\nwith lines", "{\n  \"version\": 3"),
    ] {
        let Some(mut run) = Profiled::workload(value, "5") else { return };
        let ran = run.run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.out.contains("ggprof:"), "{ran:?}");
        assert_eq!(ran.said(), [""; 0]);
        assert_eq!(run.names(), [value]);
        let text = std::fs::read_to_string(run.file(value)).unwrap();
        assert!(text.starts_with(begins), "{value}: {}", &text[..40]);
    }
}

#[test]
fn a_recording_or_compressed_by_its_name() {
    for value in ["p.ggprof", "p.json.gz", "p.ggprof.zst"] {
        let Some(mut run) = Profiled::workload(value, "5") else { return };
        assert_eq!(run.run().code, Some(0));
        assert_eq!(run.names(), [value]);
        let report = Command::new(built::ggprof()).arg(run.file(value)).output();
        assert!(Ran::of(report.unwrap()).out.contains("graph runs  5\n"), "{value}");
    }
}

/// Runs the program three times in one command; names of what is written.
fn several(value: &str, script: &str) -> Option<Vec<String>> {
    let mut run = Profiled::workload(value, "4")?;
    let words: Vec<_> = run.command.get_args().skip(2).map(|word| word.to_owned()).collect();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("eval \"$(\"$0\" env)\"; {script}")]).args(words);
    command.current_dir(run.directory.path()).env("TMPDIR", run.directory.path());
    command.env_remove("LD_PRELOAD").env("GGML_PROFILE", value);
    run.command = command;
    let ran = run.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let names = run.names();
    for name in &names {
        assert_eq!(graph_runs(&run.file(name)).len(), 4, "{name}");
    }
    Some(names)
}

#[test]
fn several_processes_of_one_command_have_a_file_each() {
    for script in [
        r#""$@" && "$@" && "$@""#,
        r#""$@" & "$@" & "$@"; wait"#,
        // In a shell of its own each.
        r#"sh -c '"$@"; exit 0' 0 "$@"; sh -c '"$@"; exit 0' 0 "$@"; sh -c '"$@"; exit 0' 0 "$@""#,
    ] {
        let Some(names) = several("p.json", script) else { return };
        assert_eq!(names.len(), 3, "{script}: {names:?}");
        assert!(names.contains(&"p.json".to_owned()), "{script}: {names:?}");
        let of_process = |name: &&String| {
            let pid = name.strip_prefix("p.").and_then(|rest| rest.strip_suffix(".json"));
            pid.is_some_and(|pid| pid.parse::<u32>().is_ok())
        };
        assert_eq!(names.iter().filter(of_process).count(), 2, "{script}: {names:?}");
    }
}

#[test]
fn the_next_command_replaces_the_file() {
    let Some(mut run) = Profiled::workload("p.json", "3") else { return };
    for _ in 0..2 {
        assert_eq!(run.run().code, Some(0));
        assert_eq!(run.names(), ["p.json"]);
    }
}

#[test]
fn the_process_id_in_a_path() {
    let Some(mut run) = Profiled::workload("%p.json", "2") else { return };
    run.run();
    let names = run.names();
    assert!(names.len() == 1 && names[0].trim_end_matches(".json").parse::<u32>().is_ok());
}

#[test]
fn all_schedulers_of_the_process_in_one_file_as_soon_as_the_last_is_freed() {
    let program = built::host_program("several_schedulers.c");
    let Some(mut run) = Profiled::new("p.json", &program) else { return };
    run.command.arg("p.json");
    let ran = run.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let size = |step: &str| -> u64 {
        let line = ran.out.lines().find_map(|line| line.strip_prefix(step)).expect("a step");
        line.trim().parse().unwrap()
    };
    assert_eq!(size("one left"), 0);
    assert!(size("none left") > 0);
    // And again at the end, with what followed.
    assert_eq!(graph_runs(&run.file("p.json")), [1, 1, 2, 2, 2, 3, 3, 3, 3]);
    assert_eq!(run.names(), ["p.json"]);
}

#[test]
fn a_program_that_ends_without_exit_handlers() {
    let Some(mut run) = Profiled::new("p.json", &built::host_program("exits_at_once.c")) else {
        return;
    };
    let ran = run.run();
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert_eq!(graph_runs(&run.file("p.json")).len(), 3);
    assert_eq!(run.names(), ["p.json"]);
}

#[test]
fn a_program_that_is_killed_leaves_its_recording() {
    let Some(mut run) = Profiled::new("p.json", &built::host_program("aborts.c")) else { return };
    let ran = run.run();
    assert_eq!(ran.code, None, "{ran:?}");
    assert!(run.kept().contains("graph runs  3\n"), "{}", run.kept());
}

#[test]
fn the_program_sees_no_child_of_ours() {
    for what in ["handle", "ignore"] {
        let program = built::host_program("waits_for_children.c");
        let Some(mut run) = Profiled::new("p.json", &program) else { return };
        run.command.arg(what);
        let ran = run.run();
        assert_eq!(ran.code, Some(9), "{ran:?}");
        assert_eq!(graph_runs(&run.file("p.json")).len(), 3);
    }
}

#[test]
fn a_forked_child_has_a_profile_of_its_own() {
    for (source, profiles) in [("forks_while_recording.c", 2), ("forks_by_system_call.c", 1)] {
        let Some(mut run) = Profiled::new("%p.json", &built::host_program(source)) else { return };
        let ran = run.run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(run.names().len(), profiles, "{source}: {:?}", run.names());
        for name in run.names() {
            assert_eq!(graph_runs(&run.file(&name)).len(), 5, "{source}");
        }
    }
}

#[test]
fn what_cannot_be_written_costs_one_sentence_and_not_the_recording() {
    for (value, sentence) in [
        (".", "GGML_PROFILE: . cannot be written: it is a directory. "),
        ("/dev/full", "GGML_PROFILE: /dev/full cannot be written: the disk is full. "),
        ("no/such/p.json", "GGML_PROFILE: no/such/p.json cannot be written: its directory does "),
        ("/proc/p.json", "GGML_PROFILE: /proc/p.json cannot be written: "),
        ("p.parq", "GGML_PROFILE: p.parq: ggprof writes no .parq. "),
    ] {
        let Some(mut run) = Profiled::workload(value, "3") else { return };
        let ran = run.run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.out.contains("done graphs=3"), "{ran:?}");
        let said = ran.said();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains(sentence), "{said:?}");
        assert!(said[0].contains("The recording is kept; open it with: ggprof report "));
        assert!(run.kept().contains("graph runs  3\n"));
    }
}

#[test]
fn a_disk_without_room_for_the_profile() {
    let mounted = TempDir::new().unwrap();
    let mount = |arguments: &[&str]| {
        let done = Command::new("mount").args(arguments).arg(mounted.path()).output();
        done.is_ok_and(|output| output.status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=16k", "tmpfs"]) {
        eprintln!("not tested: only root can mount a small disk");
        return;
    }
    let ran = Profiled::workload(mounted.path().join("p.json").to_str().unwrap(), "5")
        .map(|mut run| run.run());
    let left = std::fs::read_dir(mounted.path()).unwrap().count();
    Command::new("umount").arg(mounted.path()).status().unwrap();
    let Some(ran) = ran else { return };
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.said().len(), 1, "{ran:?}");
    assert!(ran.said()[0].contains("the disk is full"), "{ran:?}");
    assert_eq!(left, 0, "no part of a profile");
}

#[test]
fn without_the_command_the_recording_is_kept() {
    let Some(mut run) = Profiled::workload("p.json", "3") else { return };
    let script = r#"eval "$("$0" env)"; GGPROF_COMMAND=/no/such/ggprof; exec "$@""#;
    let arguments: Vec<_> = run.command.get_args().skip(2).map(|word| word.to_owned()).collect();
    let mut command = Command::new("sh");
    command.args(["-c", script]).args(arguments).current_dir(run.directory.path());
    command.env("TMPDIR", run.directory.path()).env("GGML_PROFILE", "p.json");
    run.command = command;
    let ran = run.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.said().len(), 1, "{ran:?}");
    assert!(ran.said()[0].contains("GGML_PROFILE: /no/such/ggprof cannot be run"), "{ran:?}");
    assert!(run.kept().contains("graph runs  3\n"));
}

#[test]
fn a_launcher_writes_what_the_variable_names() {
    for (value, written) in [("p.txt", &["p.txt"][..]), ("1", &[])] {
        let Some(mut run) = Profiled::workload(value, "3") else { return };
        let words: Vec<_> = run.command.get_args().skip(3).map(|word| word.to_owned()).collect();
        let mut command = Command::new(built::ggprof());
        command.args(["run", "--summary-to", "stdout", "--"]).args(words);
        command.env("GGML_PROFILE", value);
        command.current_dir(run.directory.path()).env("TMPDIR", run.directory.path());
        run.command = command;
        let ran = run.run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(run.names(), written);
        assert_eq!(ran.out.contains("graph runs  3\n"), value == "1", "{ran:?}");
    }
}

#[test]
fn programs_without_ggml_are_not_touched() {
    let Some(mut run) = Profiled::new("p.json", &built::host_program("no_ggml.c")) else { return };
    let ran = run.run();
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(3), "no ggml here\n", ""));
    assert_eq!(run.names(), [""; 0]);
}
