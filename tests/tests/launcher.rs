//! `ggprof run`: the program is not affected, and the files that were asked for are written.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ggprof_e2e::ran::{Ran, names_in};
use ggprof_e2e::source_ggml::{self, Compiler};
use ggprof_e2e::{built, published_ggml};
use serde_json::Value;
use tempfile::TempDir;

/// `ggprof run` with these options in a directory of its own.
struct Launcher {
    directory: TempDir,
    command: Command,
}

impl Launcher {
    fn new(options: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        // Who started the tests in the background may have had SIGINT ignored.
        let mut command = Command::new("env");
        command.arg("--default-signal").arg(built::ggprof());
        command.current_dir(directory.path()).arg("run").args(options).arg("--");
        command.stdin(Stdio::null()).env_remove("LD_PRELOAD");
        Self { directory, command }
    }

    fn program(mut self, words: &[&str]) -> Self {
        self.command.args(words);
        self
    }

    /// The workload on the newest ggml, one thread, as the program.
    fn workload(self, arguments: &[&str]) -> Option<Self> {
        let libraries = published_ggml::libraries(published_ggml::NEWEST)?;
        let workload = built::workload();
        let words = [&[path(&workload), path(&libraries), "--threads", "1"], arguments];
        Some(self.program(&words.concat()))
    }

    fn run(&mut self) -> Ran {
        Ran::of(self.command.output().unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        names_in(self.directory.path())
    }

    /// How many each of its profiles has, the fewest first.
    fn graph_runs(&self) -> Vec<usize> {
        let runs =
            |name: &String| json(&self.file(name))["ggprof"]["graph_runs"].as_array().map(Vec::len);
        let mut counts: Vec<usize> = self.names().iter().filter_map(runs).collect();
        counts.sort();
        counts
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn json(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

#[test]
fn a_summary_after_the_program() {
    let to_stdout = ["--summary-to", "stdout"];
    let Some(mut run) = Launcher::new(&to_stdout).workload(&["--graphs", "5"]) else { return };
    let ran = run.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (program, summary) = ran.out.split_once("ggprof: ggprof-workload").expect("a summary");
    assert!(program.contains("done graphs=5"), "{program}");
    assert!(summary.contains("graph runs  5\n"), "{summary}");
    assert!(summary.contains("CPU: splits, ops (GOT slot), barrier waits"), "{summary}");
    assert!(!summary.contains('!'), "{summary}");

    for options in [&["--summary-to", "stderr"][..], &[]] {
        let Some(mut run) = Launcher::new(options).workload(&["--graphs", "5"]) else { return };
        let ran = run.run();
        assert!(!ran.out.contains("ggprof:"), "{ran:?}");
        assert!(ran.err.contains("Operations by total time"), "{ran:?}");
    }
}

/// `script` gives the launcher a terminal.
#[test]
fn a_summary_on_the_terminal_is_standard_output() {
    let Some(run) = Launcher::new(&[]).workload(&["--graphs", "5"]) else { return };
    let words = std::iter::once(run.command.get_program()).chain(run.command.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let line = format!("{} 2> errors", words.join(" "));
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).current_dir(run.directory.path());
    let Ok(output) = terminal.stdin(Stdio::null()).env_remove("LD_PRELOAD").output() else {
        eprintln!("not tested: there is no `script`");
        return;
    };
    let ran = Ran::of(output);
    assert!(ran.out.contains("Operations by total time"), "{ran:?}");
    let errors = std::fs::read_to_string(run.file("errors")).unwrap();
    assert!(!errors.contains("Operations by total time"), "{errors}");
}

#[test]
fn outputs_by_extension_and_the_flags_of_the_in_tree_profiler() {
    let options = ["-o", "p.json", "-o", "p.csv", "-o", "p.ggprof", "--html", "p.html"];
    let flags = ["--graphs", "3", "--profile", "--profile-output", "p.txt"];
    let Some(mut run) = Launcher::new(&options).workload(&flags) else { return };
    let ran = run.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.out.contains("ggprof:"), "{}", ran.out);
    assert_eq!(run.names(), ["p.csv", "p.ggprof", "p.html", "p.json", "p.txt"]);
    let profile = json(&run.file("p.json"));
    assert_eq!(profile["ggprof"]["graph_runs"].as_array().unwrap().len(), 3);
    let fused = profile["records"].as_array().unwrap().iter();
    assert!(fused.clone().any(|record| record["extra"] == "RMS_NORM+MUL"));
    assert!(fused.clone().all(|record| record["measured"] == "host"));
    // The recording itself says the same when it is opened later.
    let report = |name: &str| {
        let mut command = Command::new(built::ggprof());
        command.arg("report").arg(run.file(name)).args(["--by", "shape"]);
        Ran::of(command.output().unwrap()).out
    };
    assert_eq!(report("p.ggprof"), report("p.json"));
    for name in ["p.ggprof", "p.json"] {
        check_work_of_fused_norms(&run.file(name));
    }
    assert!(std::fs::read_to_string(run.file("p.txt")).unwrap().contains("=== Per-Backend"));
}

#[test]
fn threads_are_kept_when_asked_for() {
    for (options, kept) in [(&["-o", "p.json"][..], false), (&["-o", "p.json", "--threads"], true)]
    {
        let Some(mut run) = Launcher::new(options).workload(&["--graphs", "2"]) else { return };
        run.run();
        let shares = &json(&run.file("p.json"))["ggprof"]["thread_shares"];
        assert_eq!(!shares.as_array().unwrap().is_empty(), kept);
    }
}

#[test]
fn what_the_program_was_told_is_not_stored() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let secret = "a-secret-prompt";
    let options = ["-o", "p.json", "-o", "p.ggprof", "-o", "p.txt", "-o", "p.csv", "-o", "p.html"];
    let workload = built::workload();
    let mut run = Launcher::new(&options).program(&[path(&workload), secret, "--graphs", "1"]);
    std::os::unix::fs::symlink(libraries, run.file(secret)).unwrap();
    let ran = run.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    std::fs::remove_file(run.file(secret)).unwrap();
    assert_eq!(run.names().len(), 5);
    for name in run.names() {
        let content = std::fs::read(run.file(&name)).unwrap();
        let found = content.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
        assert!(!found, "{name}");
    }
}

#[test]
fn nothing_recorded_is_said_and_the_exit_code_is_the_programs() {
    for (options, code) in [(&[][..], 0), (&["--strict"], 3)] {
        let ran = Launcher::new(options).program(&["echo", "hello"]).run();
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), "hello\n"));
        assert!(ran.err.starts_with("ggprof: nothing was recorded"), "{}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        for (line, code) in [("exit 3", 3), ("exit 42", 42), ("kill -SEGV $$", 128 + 11)] {
            let ran = Launcher::new(options).program(&["sh", "-c", line]).run();
            assert_eq!(ran.code, Some(code), "{options:?} {line}");
        }
    }
}

/// As `2>&1 | head` leaves it.
#[test]
fn a_standard_error_that_nobody_reads_changes_no_exit_code() {
    for code in [0, 7] {
        let mut run = Launcher::new(&[]).program(&["sh", "-c", &format!("exit {code}")]);
        let (reader, closed) = std::io::pipe().unwrap();
        drop(reader);
        let status = run.command.stderr(closed).status().unwrap();
        assert_eq!(status.code(), Some(code));
    }
}

#[test]
fn a_command_that_does_not_start_ends_as_a_shell_would_say() {
    let ran = Launcher::new(&[]).program(&["no-such-program"]).run();
    assert_eq!(ran.code, Some(127));
    assert!(ran.err.contains("no-such-program was not found"), "{}", ran.err);
    let run = Launcher::new(&[]);
    std::fs::write(run.file("no-program"), "").unwrap();
    let ran = run.program(&["./no-program"]).run();
    assert_eq!(ran.code, Some(126));
    assert!(ran.err.contains("you may not run ./no-program"), "{}", ran.err);
    let run = Launcher::new(&[]);
    std::fs::write(run.file("script"), "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(run.file("script"), Permissions::from_mode(0o755)).unwrap();
    let ran = run.program(&["./script"]).run();
    assert_eq!(ran.code, Some(127));
    assert!(ran.err.contains("what it is run by was not found"), "{}", ran.err);
    for command in [&["bench", "--", "no-such-program"][..], &["doctor", "no-such-program"]] {
        let output = Command::new(built::ggprof()).args(command).output().unwrap();
        assert_eq!(output.status.code(), Some(127), "{output:?}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("no-such-program was not found"), "{told}");
    }
}

/// What the agent has just said is not contradicted.
#[test]
fn why_nothing_was_recorded_is_not_guessed() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let workload = format!("exec '{}' '{}' --graphs 2", path(&built::workload()), path(&libraries));
    for (hindrance, reason) in [
        ("rm -r \"$(dirname \"$GGPROF_SPOOL\")\"", "cannot create "),
        ("ulimit -f 100", "no space for a recording"),
    ] {
        let line = format!("{hindrance}; {workload}");
        let ran = Launcher::new(&[]).program(&["sh", "-c", &line]).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let [agent, launcher] = &ran.said()[..] else { panic!("{ran:?}") };
        assert!(agent.starts_with(&format!("ggprof: nothing is recorded: {reason}")), "{agent}");
        let why = "ggprof: nothing was recorded. If the program's error output has a line \
                   \"ggprof: nothing is recorded\", that line says why.";
        assert!(launcher.starts_with(why), "{launcher}");
    }
}

#[test]
fn a_program_that_crashed_is_not_said_to_be_unaffected() {
    for line in ["kill -SEGV $$", "sh -c 'kill -SEGV $$'; exit $?"] {
        let ran = Launcher::new(&[]).program(&["sh", "-c", line]).run();
        assert_eq!(ran.code, Some(128 + 11));
        assert!(ran.err.contains("ggprof: warning: the program was ended by SIGSEGV."), "{ran:?}");
        assert!(!ran.err.contains("affected"), "{ran:?}");
    }
}

#[test]
fn a_full_disk_is_not_told_as_an_end_of_the_program() {
    let arguments = ["--graphs", "1500", "--embd", "64", "--layers", "1"];
    let Some(run) = Launcher::new(&["--strict"]).workload(&arguments) else { return };
    // For the launcher, too, which makes the file longer ahead of the program.
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 3000; exec \"$@\"", "sh"]).arg(run.command.get_program());
    limited.args(run.command.get_args()).current_dir(run.directory.path());
    let ran = Ran::of(limited.stdin(Stdio::null()).env_remove("LD_PRELOAD").output().unwrap());
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.contains("! Recording stopped before the program did: the disk was full"));
    assert!(!ran.err.contains("normal exit"), "{}", ran.err);
}

/// A norm and its product read the row and the weights, and write the product alone.
fn check_work_of_fused_norms(recording: &Path) {
    let mut report = Command::new(built::ggprof());
    report.arg("report").arg(recording).args(["--by", "shape", "--format", "json"]);
    let report: Value = serde_json::from_slice(&report.output().unwrap().stdout).unwrap();
    let shapes = report["shapes"].as_array().expect("a table");
    let fused: Vec<&Value> = shapes.iter().filter(|row| row["fusion"] == "RMS_NORM+MUL").collect();
    assert!(!fused.is_empty(), "{report}");
    for row in fused {
        // "[256, 5] f32"
        let shape = row["shape"].as_str().unwrap();
        let lengths = shape.trim_start_matches('[').split(']').next().unwrap().split(", ");
        let lengths: Vec<u64> = lengths.map(|length| length.parse().unwrap()).collect();
        let elements: u64 = lengths.iter().product();
        let count = row["count"].as_u64().unwrap();
        // Without rows there is nothing to do.
        let read_and_written = if elements == 0 { 0 } else { 2 * elements + lengths[0] };
        assert_eq!(row["moved_bytes"], count * 4 * read_and_written, "{row}");
        assert_eq!(row["flops"], count * 4 * elements, "{row}");
    }
}

/// Where only the first thread's progress is seen, nobody knows how long any of them waited.
#[test]
fn waits_that_were_not_seen_are_not_told_as_none() {
    use published_ggml::{BEFORE_ANNOUNCED_OPS, NEWEST};
    for (version, seen) in [(BEFORE_ANNOUNCED_OPS, false), (NEWEST, true)] {
        let Some(libraries) = published_ggml::libraries(version) else { return };
        let workload = built::workload();
        let words = [path(&workload), path(&libraries), "--threads", "2", "--graphs", "3"];
        let mut run = Launcher::new(&["-o", "p.ggprof"]).program(&words);
        assert_eq!(run.run().code, Some(0));
        let mut report = Command::new(built::ggprof());
        report.arg("report").arg(run.file("p.ggprof")).args(["--by", "op", "--format", "json"]);
        let report: Value = serde_json::from_slice(&report.output().unwrap().stdout).unwrap();
        let operations = report["operations"].as_array().expect("a table");
        let is_seen = |row: &Value| row["type"] == "OP" && !row["wait_share"].is_null();
        assert_eq!(operations.iter().any(is_seen), seen, "{version}: {report}");
    }
}

#[test]
fn streams_and_environment_are_the_programs_own() {
    let mut run = Launcher::new(&[]).program(&["cat"]);
    run.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = run.command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"through").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"through");

    let mut run = Launcher::new(&[]).program(&["sh", "-c", "echo $LD_PRELOAD"]);
    let other = built::agent().with_file_name("libother.so");
    run.command.env("LD_PRELOAD", &other);
    let list = run.run().out;
    let (before, ours) = list.trim().split_once(':').expect("two libraries");
    assert_eq!(before, path(&other));
    assert!(ours.ends_with(path(&built::agent())), "{ours}");
}

/// As `nohup`, systemd and shells start programs: some signals ignored, some blocked.
#[test]
fn signals_are_the_programs_own() {
    let mut command = Command::new("env");
    command
        .arg("--default-signal")
        .args(["--ignore-signal=HUP,INT,PIPE,CHLD", "--block-signal=USR1,TERM"]);
    command.arg(built::ggprof()).args(["run", "--", "grep", "^Sig[BI]", "/proc/self/status"]);
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let sets: Vec<u32> = ran
        .out
        .lines()
        .filter_map(|line| u64::from_str_radix(line.split_once('\t')?.1, 16).ok())
        .map(|set| set as u32 & 0x7fff_ffff) // Behind these come two of glibc's own.
        .collect();
    assert_eq!(sets, [1 << 9 | 1 << 14, 1 | 1 << 1 | 1 << 12 | 1 << 16], "{ran:?}");
}

/// A long run that is told to end in some way.
fn start(run: &mut Launcher) -> Child {
    run.command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = run.command.spawn().unwrap();
    // Long enough to have computed something.
    std::thread::sleep(Duration::from_millis(700));
    child
}

fn kill(arguments: &[&str]) {
    assert!(Command::new("kill").args(arguments).status().unwrap().success());
}

#[test]
fn an_interrupted_program_leaves_a_complete_recording() {
    // From the terminal: everybody in the process group gets it.
    let Some(mut run) = Launcher::new(&[]).workload(&["--graphs", "1000000"]) else { return };
    let child = start(&mut run);
    kill(&["-INT", "--", &format!("-{}", child.id())]);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.err.contains("Operations by total time"), "{ran:?}");
    assert!(ran.err.contains("! The program ended without a normal exit"), "{ran:?}");

    // From another process: only the launcher gets it, and passes it on.
    let Some(mut run) = Launcher::new(&[]).workload(&["--graphs", "1000000"]) else { return };
    let child = start(&mut run);
    kill(&["-TERM", &child.id().to_string()]);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(143), "{ran:?}");
    assert!(ran.err.contains("Operations by total time"), "{ran:?}");
}

#[test]
fn a_recording_that_cannot_be_delivered_is_kept() {
    for (options, code) in [(&["-o", "/dev/full"][..], 0), (&["--strict", "-o", "/dev/full"], 1)] {
        let Some(mut run) = Launcher::new(options).workload(&["--graphs", "2"]) else { return };
        let ran = run.run();
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.err.contains("/dev/full cannot be written"), "{ran:?}");
        check_kept(&ran);
    }
}

/// Whether what could not be delivered can be read where it is said to be.
fn check_kept(ran: &Ran) {
    let kept =
        ran.err.lines().find_map(|line| line.strip_prefix("The recording itself is kept in "));
    let kept = PathBuf::from(kept.expect("a place").trim_end_matches('.'));
    let files = std::fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().path());
    // Beside it may lie what Vulkan's loader was given.
    let recording = files.into_iter().find(|file| file.is_file()).expect("a recording");
    let report = Command::new(built::ggprof()).arg(recording).output().unwrap();
    assert_eq!(report.status.code(), Some(0));
    std::fs::remove_dir_all(kept).unwrap();
}

#[test]
fn only_the_user_can_open_the_recording_while_it_is_made() {
    let line = "umask 022; stat -c %a \"$(dirname \"$GGPROF_SPOOL\")\"";
    let ran = Launcher::new(&[]).program(&["sh", "-c", line]).run();
    assert_eq!(ran.out, "700\n");
}

#[test]
fn without_a_directory_for_temporary_files() {
    let Some(mut run) = Launcher::new(&[]).workload(&["--graphs", "2"]) else { return };
    run.command.env("TMPDIR", "/does/not/exist");
    let ran = run.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("graph runs  2\n"), "{ran:?}");
    // Nothing is left behind.
    assert!(run.names().is_empty());
}

/// As in a container that has nothing mounted there. glibc's loader does not find the agent then,
/// and says so.
#[test]
fn without_proc() {
    let Some(mut run) = Launcher::new(&[]).workload(&["--graphs", "2"]) else { return };
    let mut command = Command::new(built::host_program("under_hazards.c"));
    command.args(["hidden=/proc", "--"]).arg(run.command.get_program());
    command.args(run.command.get_args()).current_dir(run.directory.path());
    run.command = command;
    let ran = run.run();
    if ran.code == Some(125) {
        eprintln!("not tested: {}", ran.err);
        return;
    }
    assert!(ran.out.contains("done graphs=2"), "{ran:?}");
    assert!(ran.err.contains("ggprof: nothing was recorded"), "{ran:?}");
}

/// A program may be killed between making its recording's file and writing its first bytes.
#[test]
fn a_recording_that_had_not_begun_is_none() {
    let line = "head -c 1052672 /dev/zero > \"$(dirname \"$GGPROF_SPOOL\")/$$.ggprof\"; kill -9 $$";
    let mut run = Launcher::new(&["-o", "p.json"]).program(&["sh", "-c", line]);
    let temporary = TempDir::new().unwrap();
    run.command.env("TMPDIR", temporary.path());
    let ran = run.run();
    assert_eq!(ran.code, Some(137), "{ran:?}");
    assert!(ran.err.contains("ggprof: nothing was recorded"), "{ran:?}");
    assert!(run.names().is_empty() && names_in(temporary.path()).is_empty());
}

/// What a program leaves running may still write where its recording was made.
#[test]
fn nothing_is_left_behind_for_those_who_outlive_the_program() {
    let busy = "for n in $(seq 2000); do mkdir \"$1/$n\" || exit; done";
    let line = format!("sh -c '{busy}' sh \"$(dirname \"$GGPROF_SPOOL\")\" & sleep 0.05");
    let mut run = Launcher::new(&[]).program(&["sh", "-c", &line]);
    let temporary = TempDir::new().unwrap();
    run.command.env("TMPDIR", temporary.path()).stdout(Stdio::null()).stderr(Stdio::null());
    assert_eq!(run.command.status().unwrap().code(), Some(0));
    assert_eq!(names_in(temporary.path()), Vec::<String>::new());
}

/// The recording of a daemon ends with the command that started it, and says so.
#[test]
fn a_program_that_goes_on_is_told() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let workload = format!("'{}' '{}'", path(&built::workload()), path(&libraries));
    let recorded = "until grep -q MUL_MAT \"$spools\"/*.ggprof; do sleep 0.01; done 2>/dev/null";
    let line = format!(
        "spools=$(dirname \"$GGPROF_SPOOL\"); {workload} --graphs 100000000 >/dev/null 2>&1 & \
         echo $!; {recorded}"
    );
    let options = ["-o", "p.ggprof", "--max-size", "8MB"];
    let mut run = Launcher::new(&options).program(&["sh", "-c", &line]);
    let ran = run.run();
    let pid = ran.out.trim().to_owned();
    // It ends it only if it is still there.
    assert!(Command::new("kill").arg(&pid).status().unwrap().success(), "{ran:?}");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let sentence = format!("(process {pid}), which it started, goes on: what it does from now on");
    assert!(ran.err.contains(&sentence), "{ran:?}");
    let mut report = Command::new(built::ggprof());
    let report = Ran::of(report.arg("report").arg(run.file("p.ggprof")).output().unwrap());
    assert!(report.out.contains("! Recording was stopped"), "{report:?}");
    assert!(!report.out.contains("ended without a normal exit"), "{report:?}");
}

#[test]
fn of_a_program_that_goes_on_nothing_is_recorded_later() {
    let line = "sleep 100 >/dev/null 2>&1 & echo $!";
    let ran = Launcher::new(&[]).program(&["sh", "-c", line]).run();
    let pid = ran.out.trim().to_owned();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success(), "{ran:?}");
    let sentence = format!("sleep (process {pid}), which it started, goes on");
    assert!(ran.err.contains(&sentence), "{ran:?}");
}

/// It calls ggml in a library to give up, as its macro for assertions does, and was stripped.
#[test]
fn a_program_with_words_of_ggml_does_not_hide_it() {
    let Some(libraries) = source_ggml::libraries(Compiler::Gcc, &[]) else { return };
    let [place, at_run_time] = ["-L", "-Wl,-rpath,"].map(|word| word.to_owned() + path(&libraries));
    let options = ["-s", &place, &at_run_time, "-lggml-base"];
    let program = built::linked_program("gives_up.c", "stripped", &options);
    let ran = Launcher::new(&[]).program(&[path(&program)]).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("did not compute with ggml"), "{ran:?}");
}

/// Sanitizers ask for functions before the agent begins, while those that they stand in for do not work
/// yet, and AddressSanitizer looks who comes before it. Neither says what it finds here: leaks of the
/// program, and waits of ggml's that ThreadSanitizer was not told of.
#[test]
fn a_program_with_a_sanitizer_is_recorded() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    for (kind, options) in [
        ("asan", &["-fsanitize=address", "-ldl", "-lpthread"][..]),
        ("asan-static", &["-fsanitize=address", "-static-libasan", "-ldl", "-lpthread"]),
        ("tsan", &["-fsanitize=thread", "-ldl", "-lpthread"]),
        ("tsan-static", &["-fsanitize=thread", "-static-libtsan", "-ldl", "-lpthread"]),
    ] {
        let silent = [("ASAN_OPTIONS", "detect_leaks=0"), ("TSAN_OPTIONS", "report_bugs=0")];
        let program = built::linked_program("prints_results.c", kind, options);
        let mut plain = Command::new(&program);
        plain.arg(&libraries).arg("2").envs(silent);
        let plain = Ran::of(plain.output().unwrap());
        let words = [path(&program), path(&libraries), "2"];
        let mut run = Launcher::new(&["-o", "p.json"]).program(&words);
        run.command.envs(silent);
        let ran = run.run();
        assert_eq!((ran.code, &ran.out), (plain.code, &plain.out), "{kind} {ran:?}");
        assert!(!run.graph_runs().is_empty(), "{kind} {ran:?}");
    }
}

#[test]
fn children_are_followed_and_told_apart() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let workload = format!("'{}' '{}' --threads 1", path(&built::workload()), path(&libraries));
    let line = format!("{workload} --graphs 2; {workload} --graphs 3; true");
    let mut run = Launcher::new(&["-o", "p.json"]).program(&["sh", "-c", &line]);
    let ran = run.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let is_numbered = |name: &String| name.starts_with("p.") && name.ends_with(".json");
    assert!(run.names().iter().all(is_numbered), "{:?}", run.names());
    assert_eq!(run.graph_runs(), [2, 3]);
}

#[test]
fn forked_workers_are_reported_or_counted() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let workers = built::host_program("forks_workers.c");
    let mut run = Launcher::new(&["-o", "p.json"]).program(&[path(&workers), path(&libraries)]);
    let ran = run.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(run.graph_runs(), [3, 3, 3, 3, 4]);

    let unheard = built::host_program("forks_by_system_call.c");
    let ran = Launcher::new(&[]).program(&[path(&unheard), path(&libraries)]).run();
    let sentence = "! 1 forked child used ggml and was not recorded; ";
    assert!(ran.err.contains(sentence), "{}", ran.err);
}

#[test]
fn a_program_that_becomes_another_is_told_apart_from_it() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let program = built::host_program("execs.c");
    let mut run = Launcher::new(&["-o", "p.json"]).program(&[path(&program), path(&libraries)]);
    let ran = run.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(run.graph_runs(), [2, 5]);
}

#[test]
fn two_programs_with_one_output_leave_a_whole_file() {
    let directory = TempDir::new().unwrap();
    let output = directory.path().join("p.json");
    let start = || {
        let mut run = Launcher::new(&["-o", path(&output)]).workload(&["--graphs", "50"])?;
        run.command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = run.command.spawn().unwrap();
        Some((run, child))
    };
    let (Some((_one, mut first)), Some((_other, mut second))) = (start(), start()) else { return };
    assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
    assert_eq!(json(&output)["ggprof"]["graph_runs"].as_array().unwrap().len(), 50);
}
