//! Bad conditions, one host program or arrangement each: the program behaves as it does without the
//! agent, and nothing recorded before is lost.

mod broken_off;
mod children;
mod no_room;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use ggprof_e2e::built;
use ggprof_e2e::published_ggml::{self, BEFORE_ANNOUNCED_OPS, NEWEST, VERSIONS};
use ggprof_e2e::recording::Recording;
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_spool::layout::{Covered, CoveredHow, LossCounter, StopReason};

/// A host program on the newest libraries, ready to run.
fn host(source: &str) -> Option<UnderAgent> {
    let libraries = published_ggml::libraries(NEWEST)?;
    let mut program = UnderAgent::new(built::host_program(source));
    program.command.arg(libraries);
    Some(program)
}

/// What the agent said on standard error, among the program's own words.
fn said(output: &std::process::Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().filter(|line| line.starts_with("ggprof: ")).collect::<Vec<_>>().join("\n")
}

fn completed(recording: &Recording) -> usize {
    assert_eq!(recording.damage, []);
    recording.completed_runs().filter(|(_, end)| end.status == 0).count()
}

#[test]
fn a_copy_of_a_backend_computes_and_is_recorded() {
    let Some(mut program) = host("copies_a_backend.c") else { return };
    program.run_well();
    assert_eq!(completed(&program.recording()), 3);
}

#[test]
fn an_immediate_exit_keeps_every_graph() {
    let Some(mut program) = host("exits_at_once.c") else { return };
    assert_eq!(program.run().status.code(), Some(7));
    let recording = program.recording();
    assert_eq!(completed(&recording), 3);
    assert_eq!(recording.header.end_ticks, 0, "the end was not seen");
}

#[test]
fn an_abort_keeps_every_graph() {
    let Some(mut program) = host("aborts.c") else { return };
    assert_eq!(program.run().status.signal(), Some(6));
    assert_eq!(completed(&program.recording()), 3);
}

#[test]
fn a_program_may_close_every_descriptor() {
    let Some(mut program) = host("closes_descriptors.c") else { return };
    let own = program.directory().join("own-file");
    program.command.arg(&own);
    program.run_well();
    assert_eq!(std::fs::read(own).expect("the program's file"), b"mine");
    let recording = program.recording();
    assert_eq!(completed(&recording), 5001);
    assert!(recording.header.reserved_blocks > 16, "the recording has grown");
}

#[test]
fn a_program_may_change_its_directory() {
    let Some(mut program) = host("changes_directory.c") else { return };
    let directory = program.directory().to_owned();
    program.command.env("GGPROF_SPOOL", "here-%p.spool").current_dir(directory);
    program.run_well();
    assert_eq!(completed(&program.recording()), 5000);
}

/// The time of the inner graphs is that of the op, and their ops are said to be missing.
#[test]
fn a_graph_computed_inside_an_op_is_part_of_the_op() {
    for threads in ["1", "2"] {
        let Some(mut program) = host("computes_inside_an_op.c") else { return };
        program.command.arg(threads);
        program.run_well();
        let recording = program.recording();
        let computed: Vec<usize> =
            recording.runs.keys().map(|&run| recording.computed_in(run)).collect();
        assert_eq!(computed, [12, 12, 12, 10], "{threads}");
        let twice = recording.splits.values().any(|split| {
            let positions: std::collections::BTreeSet<u32> =
                split.ops.iter().map(|op| op.position).collect();
            positions.len() != split.ops.len()
        });
        assert!(!twice, "{threads}");
        assert!(recording.splits.values().all(|split| split.end.as_ref().is_some_and(|end| {
            usize::from(end.threads) <= threads.parse().expect("a number")
        })));
        let lost = recording.header.losses[LossCounter::OpOutsideRun as usize];
        assert_eq!((lost, recording.lost()), (60, 60), "{threads}");
    }
}

#[test]
fn ggml_before_main_and_after_exit_is_recorded() {
    let Some(mut program) = host("before_main_and_after_exit.c") else { return };
    program.run_well();
    assert_eq!(completed(&program.recording()), 3);
}

#[test]
fn nobody_waits_for_us_while_we_wait_for_the_loader() {
    let flags = ["-Wall", "-Werror", "-rdynamic", "-ldl", "-lpthread"];
    let program = built::linked_program("opens_while_others_ask.c", "program", &flags);
    let opened = built::host_library("calls_back_when_opened.c");
    for version in [BEFORE_ANNOUNCED_OPS, NEWEST] {
        let Some(libraries) = published_ggml::libraries(version) else { continue };
        for question in 1.. {
            let mut program = UnderAgent::new(&program);
            program.command.arg(&libraries).arg(&opened).arg(question.to_string());
            let output = program.run_well();
            assert_eq!(completed(&program.recording()), 2, "{version}, question {question}");
            if output.stdout == b"asked=0\n" {
                assert!(question > 1, "{version}: the loader was never asked");
                break;
            }
        }
    }
}

#[test]
fn ggml_closed_and_opened_again_is_recorded() {
    for (version, cpu) in [("3.3.2", "libggml-cpu.so"), (NEWEST, "libggml-cpu-x64.so")] {
        let Some(libraries) = published_ggml::libraries(version) else { continue };
        let mut program = UnderAgent::new(built::host_program("reopens_ggml.c"));
        program.command.arg(libraries).args(["libggml-base.so", cpu]);
        program.run_well();
        let recording = program.recording();
        assert_eq!(completed(&recording), 6, "{version}");
        for run in recording.runs.keys() {
            assert_eq!(recording.computed_in(*run), 10, "{version}");
        }
    }
}

#[test]
fn a_backend_closed_while_another_computes_is_recorded() {
    let Some(mut program) = host("closes_a_backend.c") else { return };
    program.command.args(["libggml-cpu-x64.so", "libggml-cpu-sse42.so"]);
    let output = program.run_well();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<usize> =
        text.split(['=', ' ', '\n']).filter_map(|word| word.parse().ok()).collect();
    let recording = program.recording();
    assert_eq!(recording.lost(), 0, "{:?}", recording.header.losses);
    assert_eq!(completed(&recording), numbers.iter().sum::<usize>(), "{text}");
    assert!(recording.runs.keys().all(|run| recording.computed_in(*run) == 10));
    let by_slot = |how: u8| how == CoveredHow::GotSlot as u8;
    let ops = recording.coverage.iter().filter(|covered| covered.what == Covered::Ops as u16);
    let ways: Vec<bool> = ops.map(|covered| by_slot(covered.how)).collect();
    assert_eq!(ways, [true; 21], "each time it was opened, and the other");
}

/// A server makes and frees a backend for every model that it loads.
#[test]
fn any_number_of_backends_is_recorded() {
    for order in ["after", "together"] {
        let Some(mut program) = host("many_backends.c") else { return };
        program.command.arg(order);
        program.run_well();
        let recording = program.recording();
        assert_eq!(recording.lost(), 0, "{order}: {:?}", recording.header.losses);
        assert_eq!(completed(&recording), 600, "{order}");
        let computed = recording.runs.keys().map(|run| recording.computed_in(*run));
        assert_eq!(computed.filter(|nodes| *nodes == 10).count(), 600, "{order}");
    }
}

#[test]
fn libraries_are_found_by_who_opens_them() {
    let library = built::host_library("found_beside.c");
    let beside = library.with_file_name("beside");
    std::fs::create_dir_all(&beside).unwrap();
    std::fs::copy(library, beside.join("libfound.so")).unwrap();
    let path = "-Wl,--enable-new-dtags,-rpath,$ORIGIN/beside";
    let program = built::linked_program("opens_beside_itself.c", "program", &[path, "-ldl"]);
    assert_eq!(UnderAgent::new(program).run_well().stdout, b"42\n");
}

#[test]
fn a_program_without_ggml_is_not_touched() {
    let mut program = UnderAgent::new(built::host_program("no_ggml.c"));
    let output = program.run();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stdout, b"no ggml here\n");
    assert_eq!(output.stderr, b"");
    assert!(program.recordings().is_empty());
}

#[test]
fn a_program_that_asks_for_functions_of_ggml_gets_the_answer_it_would_get() {
    let program = built::host_program("asks_for_ggml.c");
    let alone = std::process::Command::new(&program).output().unwrap();
    assert!(String::from_utf8_lossy(&alone.stdout).contains("not there, with an error"));
    let observed = UnderAgent::new(program).run_well();
    assert_eq!(String::from_utf8_lossy(&observed.stdout), String::from_utf8_lossy(&alone.stdout));
}

#[test]
fn without_a_spool_nothing_is_recorded_or_said() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let mut workload = UnderAgent::workload(&libraries, &["--graphs", "2"]);
    workload.command.env_remove("GGPROF_SPOOL");
    let output = workload.run_well();
    assert_eq!(said(&output), "");
    assert!(workload.recordings().is_empty());
}

/// Packages give their libgcc another name.
#[test]
fn an_unwinder_that_cannot_be_opened_by_its_name_is_found_where_it_is_loaded() {
    let flags = ["-Wall", "-Werror", "-rdynamic", "-ldl"];
    let program = built::linked_program("has_no_unwinder.c", "program", &flags);
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let mut program = UnderAgent::new(&program);
    program.command.arg(&libraries);
    let output = program.run_well();
    assert_eq!(output.stdout, b"done\n");
    assert_eq!(completed(&program.recording()), 2, "{output:?}");
}

#[test]
fn two_programs_with_one_path_make_two_recordings() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let mut shell = UnderAgent::new("sh");
    let one = format!("'{}' '{}' --graphs", built::workload().display(), libraries.display());
    let script = format!("{one} 2 & {one} 3; wait");
    let path = shell.directory().join("one.spool");
    shell.command.args(["-c", &script]).env("GGPROF_SPOOL", path);
    shell.run_well();
    let mut counts: Vec<usize> = shell.recordings().iter().map(completed).collect();
    counts.sort_unstable();
    assert_eq!(counts, [2, 3]);
}

#[test]
fn the_command_line_is_not_stored() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let mut workload = UnderAgent::workload(&libraries, &["--graphs", "1", "--prompt", "31"]);
    workload.run_well();
    let file = std::fs::read_dir(workload.directory()).expect("ours").flatten().next();
    let bytes = std::fs::read(file.expect("a recording").path()).expect("it can be read");
    // Only where ggml's libraries are is stored, so that their ops can be run again.
    for word in [b"--prompt".as_slice(), b"--graphs"] {
        assert!(!bytes.windows(word.len()).any(|window| window == word));
    }
    assert_eq!(workload.recording().header.command, "ggprof-workload");
}

/// The system shows less of such a process.
#[test]
fn a_program_goes_on_without_its_first_thread() {
    let Some(mut program) = host("ends_its_first_thread.c") else { return };
    program.command.stdin(Stdio::null());
    program.run_well();
    let recording = program.recording();
    assert_eq!(completed(&recording), 4);
    assert_eq!(recording.header.command, "ends_its_first_thread_c.program");
}

#[test]
fn times_are_those_of_the_system_and_not_what_the_program_is_shown() {
    let Some(mut program) = host("several_schedulers.c") else { return };
    let list = [built::host_library("shows_other_times.c"), built::agent()];
    program.command.arg("p.json");
    program.command.env("LD_PRELOAD", list.map(|path| path.display().to_string()).join(":"));
    let since =
        |start: SystemTime| start.duration_since(UNIX_EPOCH).expect("after 1970").as_nanos();
    let before = since(SystemTime::now());
    program.run_well();
    let meanwhile = before..=since(SystemTime::now());
    let recording = program.recording();
    assert_eq!(completed(&recording), 9);
    let mut samples = recording.clock_samples.iter();
    assert!(samples.all(|sample| meanwhile.contains(&u128::from(sample.realtime_ns))));
    assert!(meanwhile.contains(&u128::from(recording.header.start_realtime_ns)));
}

#[test]
fn a_killed_program_keeps_every_completed_graph() {
    let rounds = std::env::var("GGPROF_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..rounds {
        let version = VERSIONS[round % VERSIONS.len()];
        let Some(libraries) = published_ggml::libraries(version) else { continue };
        let threads = if round % 2 == 0 { "1" } else { "2" };
        let arguments = ["--graphs", "100000", "--threads", threads, "--embd", "64", "--announce"];
        let mut workload = UnderAgent::workload(&libraries, &arguments);
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let delay = std::time::Duration::from_micros(20_000 + (seed >> 33) % 180_000);
        workload.command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        let mut child = workload.command.spawn().expect("the workload starts");
        std::thread::sleep(delay);
        child.kill().expect("it can be killed");
        let output = child.wait_with_output().expect("it has ended");
        let text = String::from_utf8_lossy(&output.stdout);
        // The last line may be cut; a whole one was written after its graph.
        let announced = text.matches("computed ").count().saturating_sub(1);
        let announced = text.lines().take(announced).filter(|l| l.starts_with("computed ")).count();
        let recordings = workload.recordings();
        if announced == 0 && recordings.is_empty() {
            continue;
        }
        let recording = &recordings[0];
        assert!(completed(recording) >= announced, "round {round}");
        // Ticks have a meaning only where two samples give the clock's rate.
        assert!(completed(recording) == 0 || recording.clock_samples.len() >= 2, "round {round}");
        let mut splits_of = std::collections::HashMap::<u32, u32>::new();
        let ended: std::collections::HashSet<u32> =
            recording.completed_runs().map(|(run, _)| run.begin.run).collect();
        for split in recording.splits.values() {
            *splits_of.entry(split.begin.run).or_default() += 1;
            if ended.contains(&split.begin.run) {
                let whole = recording.working_positions(split);
                assert_eq!(recording.recorded_positions(split), whole, "round {round}");
            }
        }
        for (run, end) in recording.completed_runs() {
            assert_eq!(splits_of.get(&run.begin.run), Some(&end.splits), "round {round}");
        }
    }
}
