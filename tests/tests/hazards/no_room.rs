//! Disks and memory that are full or may not be written.

use super::*;
use ggprof_e2e::source_ggml;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

#[test]
fn a_path_that_cannot_be_written_costs_one_sentence() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    for path in ["/proc/ggprof-%p", "/no/such/directory/%p.spool"] {
        let mut workload = UnderAgent::workload(&libraries, &["--graphs", "2"]);
        workload.command.env("GGPROF_SPOOL", path);
        let output = workload.run_well();
        let said = said(&output);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.starts_with("ggprof: nothing is recorded: cannot create /"), "{said}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("done graphs=2"));
    }
}

/// Runs the workload behind a shell limit.
fn limited(limit: &str, arguments: &str) -> Option<UnderAgent> {
    let libraries = published_ggml::libraries(NEWEST)?;
    let mut shell = UnderAgent::new("sh");
    let workload: PathBuf = built::workload();
    let script = format!(
        "ulimit {limit}; exec '{}' '{}' {arguments}",
        workload.display(),
        libraries.display()
    );
    shell.command.args(["-c", &script]);
    Some(shell)
}

#[test]
fn a_full_disk_stops_the_recording_and_not_the_program() {
    // 512-byte units: room for the first chunk of 1 MiB, not for a second.
    let arguments = "--graphs 1500 --threads 1 --embd 64 --layers 1";
    let Some(mut program) = limited("-f 3000", arguments) else { return };
    let output = program.run_well();
    let said = said(&output);
    assert!(said.contains("recording stopped: no space left"), "{said}");
    let recording = program.recording();
    assert_eq!(recording.header.stop_reason, StopReason::NoSpace as u64);
    assert!(recording.lost() > 0);
    assert!(completed(&recording) > 100);
}

#[test]
fn a_disk_full_from_the_start_costs_one_sentence() {
    let Some(mut program) = limited("-f 100", "--graphs 2") else { return };
    let output = program.run_well();
    let said = said(&output);
    assert!(said.starts_with("ggprof: nothing is recorded: no space"), "{said}");
    assert!(program.recordings().is_empty());
}

#[test]
fn little_memory_costs_records_and_not_the_program() {
    // Found by trying: enough for ggml, too little for some of our tables.
    for kilobytes in [60_000, 90_000, 150_000] {
        let limit = format!("-v {kilobytes}");
        let arguments = "--graphs 3 --threads 2 --embd 64";
        let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
        let Some(mut program) = limited(&limit, arguments) else { return };
        let script = format!(
            "ulimit {limit}; exec '{}' '{}' {arguments}",
            built::workload().display(),
            libraries.display()
        );
        let alone = std::process::Command::new("sh").args(["-c", &script]).output();
        let alone = alone.expect("the shell starts");
        let output = program.run();
        if alone.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{kilobytes}: {said}");
        }
    }
}

/// The agent gets no more memory from some moment on, whichever that is.
#[test]
fn the_agent_goes_without_memory_and_the_program_goes_on() {
    if let Some(libraries) = published_ggml::libraries(NEWEST) {
        let arguments = ["--graphs", "3", "--threads", "2", "--embd", "64", "--layers", "1"];
        let ended_early = go_without_memory(&|| UnderAgent::workload(&libraries, &arguments));
        assert!(ended_early > 0, "no moment was in the middle of a recording");
    }
    if let Some(program) = source_ggml::linked_into("ggml_linked_in.c") {
        go_without_memory(&|| {
            let mut program = UnderAgent::new(&program);
            program.command.args(["3", "1"]);
            program
        });
    }
}

/// How many recordings ended before the program did.
fn go_without_memory(program: &dyn Fn() -> UnderAgent) -> u32 {
    let refusing = built::host_library("lets_the_agent_go_without.c");
    let run_from = |first_refused: u32| {
        let mut program = program();
        let mut preloaded = built::agent().into_os_string();
        preloaded.push(":");
        preloaded.push(&refusing);
        program.command.env("LD_PRELOAD", preloaded);
        program.command.env("LACKS_FROM", first_refused.to_string());
        let output = program.run();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "from {first_refused}: {errors}");
        let said = said(&output);
        let computed = String::from_utf8_lossy(&output.stdout);
        let without_times = computed.split(" seconds=").next().unwrap_or_default().to_owned();
        (program, without_times, said)
    };
    let (program, computed, said) = run_from(u32::MAX);
    assert_eq!(said, "");
    let runs = completed(&program.recording());
    let moments = (0..16).chain((5..).map(|step| (1.5_f64.powi(step)) as u32 + 8));
    let mut ended_early = 0;
    for first_refused in moments.take_while(|at| *at < 4000) {
        let (program, also_computed, said) = run_from(first_refused);
        assert_eq!(also_computed, computed, "from {first_refused}");
        for recording in program.recordings() {
            assert!(completed(&recording) <= runs);
            if recording.header.stop_reason == StopReason::NoMemory as u64 {
                assert!(
                    said.contains("recording stopped: the program has no memory left"),
                    "{said}"
                );
                ended_early += 1;
            }
        }
        let is_complete = program.recordings().iter().any(|it| completed(it) == runs);
        assert!(is_complete || said.contains("no memory left"), "from {first_refused}: {said}");
    }
    ended_early
}

/// Where a program has hardly more memory than it needs, asking for a recording is what it cannot afford.
#[test]
fn what_a_program_needs_itself_is_left_to_it() {
    let Some(program) = source_ggml::linked_into("ggml_linked_in.c") else { return };
    let script =
        |kilobytes: u32| format!("ulimit -v {kilobytes}; exec '{}' 3 1", program.display());
    let run = |kilobytes: u32, asked: bool| {
        let mut shell = UnderAgent::new("sh");
        shell.command.args(["-c", &script(kilobytes)]);
        if !asked {
            shell.command.env_remove("GGPROF_SPOOL");
        }
        let output = shell.run();
        let said = said(&output);
        (output.status.code(), output.stdout, said, shell)
    };
    // The shell must start, too.
    let works = |kilobytes: &u32| run(*kilobytes, false).0 == Some(0);
    let needed = (20_000..100_000).step_by(500).find(works).expect("a limit that is enough");
    // To look at the program, the agent needs a little itself.
    for kilobytes in (needed + 1000..needed + 6000).step_by(200) {
        let (code, out, said, shell) = run(kilobytes, true);
        assert_eq!((code, out), (Some(0), run(kilobytes, false).1), "{kilobytes}: {said}");
        assert!(
            said.starts_with("ggprof: nothing is recorded: the limits of the program"),
            "{said}"
        );
        assert!(shell.recordings().is_empty());
    }
}

/// The launcher makes room ahead; here the test does. With a limited memory the agent has mapped none of that, and
/// an older system does not say how long a file is that is not open.
#[test]
fn a_program_that_may_open_no_file_goes_on_where_room_was_made() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    // As many graphs as fill the first blocks; with a limited memory a chunk behind them as well.
    for (condition, graphs, blocks) in
        [("umask=77", 6_000, 16), ("refuse=reserving", 6_000, 16), (LIMITED, 20_000, 16 + 64)]
    {
        let recording = of_a_program_that_may_open_no_file(&libraries, condition, graphs);
        assert_eq!(completed(&recording), 2 + graphs, "{condition}");
        assert!(recording.header.reserved_blocks > blocks, "{condition}: it has grown");
    }
}

/// More than any program has.
const LIMITED: &str = "limit=memory:100000000000";

fn of_a_program_that_may_open_no_file(
    libraries: &Path,
    condition: &str,
    graphs: usize,
) -> Recording {
    let mut program = UnderAgent::new(built::host_program("under_hazards.c"));
    program.command.args([condition, "--"]).arg(built::host_program("limits_its_calls.c"));
    program.command.arg(libraries).arg(graphs.to_string());
    let mut running =
        program.command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut ready = String::new();
    let output = running.stdout.take().expect("it has an output");
    BufReader::new(output).read_line(&mut ready).expect("it is read");
    assert_eq!(ready, "ready\n", "{condition}");
    let mut file = File::options().append(true).open(&program.files()[0]).expect("it is there");
    file.write_all(&vec![0; 20 << 20]).expect("there is room");
    drop(running.stdin.take());
    let status = running.wait().expect("it is waited for");
    assert!(status.success(), "{condition}: {status:?}");
    program.recording()
}
