//! libggml-profiler: a C program, compiled against its header, checks each function; the tests
//! check what it wrote and printed. Both orders of linking are tested, and a preloaded agent.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ggprof_e2e::{built, published_ggml, source_ggml};
use serde_json::Value;
use tempfile::TempDir;

/// `ggml` stands for its libraries, under whatever names they are published.
const OURS_FIRST: [&str; 2] = ["-lggml-profiler", "ggml"];
const OURS_LAST: [&str; 2] = ["ggml", "-lggml-profiler"];

/// The program, linked in this order, and the directory it writes to.
struct SelfProfiler {
    program: PathBuf,
    libraries: PathBuf,
    directory: TempDir,
}

impl SelfProfiler {
    fn linked(order: [&str; 2], kind: &str, version: &str) -> Option<Self> {
        Self::of("profiles_itself.c", &order, kind, version)
    }

    fn of(source: &str, order: &[&str], kind: &str, version: &str) -> Option<Self> {
        Self::with(source, order, kind, published_ggml::libraries(version)?)
    }

    fn with(source: &str, order: &[&str], kind: &str, libraries: PathBuf) -> Option<Self> {
        let ours = built::profiler_library();
        let mut flags = vec!["-Wall".to_owned(), "-Werror".to_owned()];
        flags.push(format!("-I{}", built::profiler_header().display()));
        for directory in [ours.as_path(), &libraries] {
            flags.push(format!("-L{}", directory.display()));
            flags.push(format!("-Wl,-rpath,{}", directory.display()));
        }
        for &library in order {
            match library {
                "ggml" => flags.extend(ggml_libraries(&libraries)),
                other => flags.push(other.to_owned()),
            }
        }
        flags.push("-Wl,--allow-shlib-undefined".to_owned());
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let program = built::linked_program(source, kind, &flags);
        Some(Self { program, libraries, directory: TempDir::new().unwrap() })
    }

    /// The program as the command, or behind another.
    fn command(&self, before: &[&str]) -> Command {
        let mut words = before.iter().map(Path::new).chain([self.program.as_path()]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).arg(&self.libraries).arg(self.directory.path());
        command.env("TMPDIR", self.directory.path()).env_remove("LD_PRELOAD");
        command
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(name)).unwrap()
    }
}

fn ggml_libraries(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap().flatten().map(|entry| entry.file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    let is_wanted = |name: &String| {
        (name.starts_with("libggml.") || name.starts_with("libggml-base.")) && name.ends_with(".so")
    };
    names.filter(is_wanted).map(|name| format!("-l:{name}")).collect()
}

#[track_caller]
fn well(output: Output) -> String {
    let (out, err) = (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned());
    let out = String::from_utf8_lossy(&out).into_owned();
    assert!(output.status.success() && out.contains("all is well"), "{out}\n{err}");
    assert!(!err.contains("ggprof:"), "{err}");
    out
}

#[test]
fn every_function_in_both_orders_of_linking() {
    let [_, older, newest] = published_ggml::VERSIONS;
    for (order, kind, version) in [
        (OURS_FIRST, "first", newest),
        (OURS_LAST, "last", newest),
        (OURS_LAST, "last-older", older),
    ] {
        let Some(program) = SelfProfiler::linked(order, kind, version) else { return };
        let out = well(program.command(&[]).output().unwrap());
        let exported: Value = serde_json::from_str(&program.read("exported.json")).unwrap();
        assert_eq!(exported["total_records"], 30, "{kind}");
        assert_eq!(exported["backends"].as_array().unwrap().len(), 1);
        assert_eq!(exported["backends"][0]["name"], "CPU");
        assert!(program.read("exported.txt").contains("Total records: 30"));
        let written = program.read("exported.json") + &program.read("exported.txt");
        assert_eq!(program.read("written"), written);
        let (_, printed) = out.split_once("before the summary\n").unwrap();
        let (printed, _) = printed.split_once("behind the summary\n").unwrap();
        assert!(printed.contains("30 ops") && printed.contains("graph runs  3\n"), "{printed}");
        assert!(!printed.contains('!'), "{printed}");
        let mut left: Vec<_> = std::fs::read_dir(program.directory.path()).unwrap().collect();
        left.retain(|entry| {
            entry.as_ref().unwrap().path().extension().unwrap_or_default() == "ggprof"
        });
        assert_eq!(left.len(), 0, "the recording goes with the process");
    }
}

/// The agent fails at one step of a program that asks to be recorded. The program computes what it would
/// have, and hears what could not be recorded or has the records of all its other graphs.
#[test]
fn a_program_that_profiles_itself_goes_on_after_a_fault() {
    let version = published_ggml::NEWEST;
    let program = SelfProfiler::of("opens_the_profiler.c", &["ggml"], "program", version);
    let Some(program) = program else { return };
    let log = program.directory.path().join("steps");
    let run = |number: usize| {
        let _ = std::fs::remove_file(&log);
        let mut command = Command::new(&program.program);
        command.arg(&program.libraries).arg(built::profiler_library().join("libggml-profiler.so"));
        command.env("TMPDIR", program.directory.path()).env("LD_PRELOAD", built::checked_agent());
        command.env("GGPROF_FAULT_AT", number.to_string()).env("GGPROF_FAULT_LOG", &log);
        let output = command.output().expect("the program starts");
        assert!(output.status.success(), "step {number}: {output:?}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (said, std::fs::read_to_string(&log).expect("the agent takes steps"))
    };
    let (said, steps) = run(0);
    assert_eq!(said, "records=30\nrecords=30\nenvironment moved=0\n");
    let mut seen = Vec::new();
    for (number, place) in (1..).zip(steps.lines()) {
        let is_wanted = place.contains("late.rs") || place.contains("current.rs");
        if !is_wanted || seen.contains(&place) {
            continue;
        }
        seen.push(place);
        let (said, _) = run(number);
        let lines = said.lines().filter_map(|line| line.strip_prefix("records="));
        let records: i32 = lines.filter_map(|count| count.parse::<i32>().ok()).sum();
        let is_told = said.contains("nothing can be recorded") || records >= 50;
        assert!(is_told && said.ends_with("environment moved=0\n"), "{place}: {said}");
    }
    assert!(seen.len() > 2, "{steps}");
}

#[test]
fn together_with_a_launcher_everything_is_recorded_once() {
    for (order, kind) in [(OURS_FIRST, "first-run"), (OURS_LAST, "last-run")] {
        let version = published_ggml::NEWEST;
        let Some(program) = SelfProfiler::linked(order, kind, version) else { return };
        let (ggprof, profile) = (built::ggprof(), program.directory.path().join("run.json"));
        let before = [ggprof.to_str().unwrap(), "run", "-o", profile.to_str().unwrap(), "--"];
        well(program.command(&before).output().unwrap());
        let whole: Value = serde_json::from_str(&program.read("run.json")).unwrap();
        // All graphs of all schedulers, whether they were switched on or not.
        assert_eq!(whole["total_records"], 130, "{kind}");
        assert_eq!(whole["ggprof"]["graph_runs"].as_array().unwrap().len(), 13);
    }
}

#[test]
fn the_variable_works_for_a_program_that_only_links_the_library() {
    let version = published_ggml::NEWEST;
    let Some(program) = SelfProfiler::linked(OURS_LAST, "variable", version) else { return };
    let mut command = program.command(&[]);
    command.env("GGML_PROFILE", program.directory.path().join("whole.json"));
    let output = command.env("GGPROF_COMMAND", built::ggprof()).output().unwrap();
    well(output);
    let whole: Value = serde_json::from_str(&program.read("whole.json")).unwrap();
    // The hooks are there from the start, so the graphs before the first call count as well.
    assert_eq!(whole["total_records"], 130);
}

/// Then it has come late: it does what it is asked through its functions, and nothing before,
/// as threads run that read and change the environment.
#[test]
fn a_program_may_open_the_library() {
    let version = published_ggml::NEWEST;
    let program = SelfProfiler::of("opens_the_profiler.c", &["ggml"], "program", version);
    let Some(program) = program else { return };
    let opens = || {
        let mut command = Command::new(&program.program);
        command.arg(&program.libraries).arg(built::profiler_library().join("libggml-profiler.so"));
        command.env("TMPDIR", program.directory.path()).env_remove("LD_PRELOAD");
        command.env("GGPROF_COMMAND", built::ggprof());
        command
    };
    let profile = program.directory.path().join("asked.json");
    let mut with_profile = opens();
    with_profile.env("GGML_PROFILE", &profile);
    for mut command in [opens(), with_profile] {
        let output = command.output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(out, "records=30\nrecords=30\nenvironment moved=0\n");
    }
    let profile: Value = serde_json::from_str(&std::fs::read_to_string(profile).unwrap()).unwrap();
    // All from the first question on.
    assert_eq!(profile["total_records"], 80);
}

/// It has a second thread, and its ggml computed before: that thread may be in the functions whose entries
/// the agent would change.
#[test]
fn code_that_may_be_running_is_not_changed() {
    let Some(libraries) = source_ggml::with_symbolic_ops() else { return };
    let program = SelfProfiler::with("opens_the_profiler.c", &["ggml"], "resists", libraries);
    let Some(program) = program else { return };
    let report = program.directory.path().join("report.json");
    let mut command = Command::new(&program.program);
    command.arg(&program.libraries).arg(built::profiler_library().join("libggml-profiler.so"));
    command.env("TMPDIR", program.directory.path()).env_remove("LD_PRELOAD");
    command.env("GGPROF_COMMAND", built::ggprof()).env("GGML_PROFILE", &report);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(out, "records=30\nrecords=30\nenvironment moved=0\n");
    let report = std::fs::read_to_string(report).unwrap();
    assert!(
        report.contains("it was loaded before ggprof began, and threads may be in it"),
        "{report}"
    );
}

#[test]
fn the_header_is_c_and_cpp() {
    for (compiler, language, standard) in [("gcc", "c", "-std=c11"), ("g++", "c++", "-std=c++11")] {
        let header = built::profiler_header().join("ggml-profiler.h");
        let mut command = Command::new(compiler);
        command.args(["-fsyntax-only", "-Wall", "-Wextra", "-pedantic", standard, "-x", language]);
        let output = command.arg(header).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
