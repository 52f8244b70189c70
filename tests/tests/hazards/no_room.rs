//! Disks and memory that are full or may not be written.

use super::*;

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
