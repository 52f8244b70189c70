//! Every step of every hook fails once: the agent panics there, in a build made for it
//! (`fault_point` in the agent). The program's output and exit code stay the same, nothing hangs, a
//! stop of the recording still completes, and the recording has all graph runs but one and says
//! that something is missing.
//!
//! A step that is taken often fails the first time, the second and the last. With
//! `GGPROF_EVERY_FAULT=1` it fails each time.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use ggprof_e2e::controlled::{Running, Session};
use ggprof_e2e::model::Model;
use ggprof_e2e::published_ggml::{self, BEFORE_ANNOUNCED_OPS, NEWEST};
use ggprof_e2e::ran::names_in;
use ggprof_e2e::recording::Recording;
use ggprof_e2e::rpc::RpcServer;
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_e2e::within::output_within;
use ggprof_e2e::{built, debian_sid, source_ggml};
use ggprof_spool::layout::{LossCounter, StopReason};

/// Far more than any of the programs needs.
const LIMIT: Duration = Duration::from_secs(60);

/// The same command.
fn again(program: &Command) -> Command {
    let mut command = Command::new(program.get_program());
    command.args(program.get_args()).envs(wishes(program));
    command
}

/// What is set in a command's environment.
fn wishes(program: &Command) -> impl Iterator<Item = (&OsStr, &OsStr)> {
    program.get_envs().filter_map(|(name, value)| Some((name, value?)))
}

/// The program under the agent that can fail.
fn faulty(program: &Command) -> UnderAgent {
    let mut recorded = UnderAgent::of(again(program));
    // Wishes that concern recording were taken away from it.
    recorded.command.envs(wishes(program)).env("LD_PRELOAD", built::checked_agent());
    recorded
}

/// What the agent does in a program where nothing fails.
struct Steps {
    /// Where in the agent's source each is, in order.
    places: Vec<String>,
    ended_runs: usize,
    whole_runs: usize,
}

impl Steps {
    fn of(program: &Command) -> Steps {
        let mut program = faulty(program);
        let log = program.directory().join("steps");
        program.command.env("GGPROF_FAULT_LOG", &log);
        program.run();
        let recording = program.recording();
        assert_eq!(recording.lost(), 0, "nothing was to fail");
        let text = std::fs::read_to_string(log).expect("the agent takes steps");
        Steps {
            places: text.lines().map(str::to_owned).collect(),
            ended_runs: recording.completed_runs().count(),
            whole_runs: whole_runs(&recording),
        }
    }

    /// Numbers of those to fail, counted from 1, among those in files of this name.
    fn chosen(&self, file: &str) -> Vec<usize> {
        let all = (1..).zip(&self.places).filter(|(_, place)| place.contains(file));
        if std::env::var_os("GGPROF_EVERY_FAULT").is_some() {
            return all.map(|(number, _)| number).collect();
        }
        let mut by_place: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        all.for_each(|(number, place)| by_place.entry(place).or_default().push(number));
        let some = |numbers: &Vec<usize>| {
            let mut some: Vec<usize> =
                numbers.iter().take(2).chain(numbers.last()).copied().collect();
            some.dedup();
            some
        };
        by_place.values().flat_map(some).collect()
    }
}

/// Graph runs that ended with every node recorded that does work.
fn whole_runs(recording: &Recording) -> usize {
    let is_whole = |run: u32| {
        let mut splits = recording.splits_of(run);
        splits
            .all(|split| recording.recorded_positions(split) == recording.working_positions(split))
    };
    recording.completed_runs().filter(|(run, _)| is_whole(run.begin.run)).count()
}

fn check_every_fault(program: &Command) {
    check_faults_in(program, &[""]);
}

/// Those in files of these names.
fn check_faults_in(program: &Command, files: &[&str]) {
    let plain = again(program).output().expect("the program starts");
    let steps = Steps::of(program);
    let chosen = files.iter().flat_map(|file| steps.chosen(file)).collect::<Vec<_>>();
    assert!(!chosen.is_empty(), "it comes to none of {files:?}");
    println!("{} of {} steps", chosen.len(), steps.places.len());
    let check = |number: &usize| {
        let what = check_fault(program, &plain, &[*number], &steps).err()?;
        Some(format!("step {number}, usually {}: {what}", steps.places[number - 1]))
    };
    let wrong: Vec<String> = chosen.iter().filter_map(check).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check_fault(
    program: &Command,
    plain: &Output,
    numbers: &[usize],
    steps: &Steps,
) -> Result<(), String> {
    let mut program = faulty(program);
    let list: Vec<String> = numbers.iter().map(usize::to_string).collect();
    let log = program.directory().join("steps");
    program.command.env("GGPROF_FAULT_AT", list.join(",")).env("GGPROF_FAULT_LOG", &log);
    let output = output_within(LIMIT, &mut program.command).ok_or("it hangs")?;
    // Some steps depend on the time that passes.
    let taken = std::fs::read_to_string(log).unwrap_or_default().lines().count();
    let faults = numbers.iter().filter(|&&number| number <= taken).count();
    let said = String::from_utf8_lossy(&output.stderr);
    let same = output.status == plain.status && output.stdout == plain.stdout;
    same.then_some(()).ok_or_else(|| format!("{output:?}"))?;
    let files = program.files();
    let told = !files.is_empty() || said.contains("ggprof: ");
    told.then_some(()).ok_or("neither a recording nor a word")?;
    for file in &files {
        check_recording(&Recording::read(file), faults, steps)?;
        check_report(file, faults)?;
    }
    Ok(())
}

fn check_recording(recording: &Recording, faults: usize, steps: &Steps) -> Result<(), String> {
    let header = &recording.header;
    let (ended, whole) = (recording.completed_runs().count(), whole_runs(recording));
    let is_off = header.stop_reason == StopReason::Faults as u64;
    let right = recording.damage.is_empty()
        && header.active == 0
        && header.losses[LossCounter::Fault as usize] == faults as u64
        && is_off == (faults > 2)
        && (is_off || ended + faults >= steps.ended_runs && whole + faults >= steps.whole_runs);
    right.then_some(()).ok_or_else(|| {
        let of = (steps.ended_runs, steps.whole_runs);
        format!("{ended} runs, {whole} whole of {of:?}; {:?}; {header:?}", recording.damage)
    })
}

/// What users are told.
fn check_report(file: &Path, faults: usize) -> Result<(), String> {
    let report = Command::new(built::ggprof()).arg("report").arg(file).output();
    let report = report.expect("ggprof starts");
    let text = [report.stdout, report.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let told = matches!(report.status.code(), Some(1 | 3)) && text.contains("fault");
    let told = told || faults == 0;
    told.then_some(()).ok_or_else(|| format!("{:?}: {text}", report.status))
}

/// A small program that uses nearly all that the agent stands in for.
fn small(libraries: Option<PathBuf>) -> Option<Command> {
    let mut program = Command::new(built::host_program("prints_results.c"));
    program.arg(libraries?).arg("1");
    Some(program)
}

#[test]
fn a_program_with_shared_libraries() {
    let Some(program) = small(published_ggml::libraries(NEWEST)) else { return };
    check_every_fault(&program);
}

/// Its ops are seen by the abort callback.
#[test]
fn a_program_on_an_old_ggml() {
    let Some(program) = small(published_ggml::stripped(BEFORE_ANNOUNCED_OPS)) else { return };
    check_every_fault(&program);
}

#[test]
fn a_program_with_ggml_linked_into_it() {
    let Some(program) = source_ggml::linked_into("ggml_linked_in.c") else { return };
    let mut program = Command::new(program);
    program.args(["3", "1"]);
    check_every_fault(&program);
}

fn on_cuda(runs: &str, wishes: &[(&str, &str)]) -> Option<Command> {
    let (folder, cupti) = built::fake_cuda();
    let mut program = Command::new(built::host_program("uses_a_fake_cuda_device.c"));
    program.arg(published_ggml::libraries(NEWEST)?).arg(folder).args(runs.split(' '));
    program.env("GGPROF_CUPTI", cupti).envs(wishes.iter().copied());
    Some(program)
}

/// A window of forty runs, some that are timed by events, perhaps another window, and some that
/// are not recorded.
#[test]
fn a_program_on_a_cuda_device() {
    let wishes = [("GGPROF_CUDA", "sample"), ("GGPROF_BUDGET", "100"), ("GGPROF_LAST_GRAPH", "50")];
    let Some(program) = on_cuda("direct2 capture replay2 copy direct50", &wishes) else { return };
    check_faults_in(&program, &["cu"]);
}

#[test]
fn a_program_whose_nodes_are_computed_one_by_one() {
    let wishes = [("GGPROF_CUDA", "off"), ("GGPROF_SERIALIZE", "1")];
    let Some(program) = on_cuda("direct3", &wishes) else { return };
    check_faults_in(&program, &["serialize"]);
}

#[test]
fn a_program_on_a_vulkan_device() {
    let Some((libraries, environment)) = published_ggml::vulkan_libraries(NEWEST) else { return };
    let mut program = Command::new(built::host_program("prints_results.c"));
    program.arg(libraries).args(["1", "Vulkan0"]).envs(environment);
    check_faults_in(&program, &["vulkan"]);
}

/// The device is asked about what the processor computes, which uses experts.
#[test]
fn a_program_on_the_processor_beside_a_device() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let mut program = Command::new(built::host_program("device_beside.c"));
    program.arg(libraries).args(["1", "answers"]);
    check_faults_in(&program, &["placement.rs", "experts.rs", "memory_kinds.rs"]);
}

/// A few tokens of a tiny model. What it would print are times, which differ.
fn generation(backends: &[&str], more: &[&str]) -> Option<Command> {
    let mut bench = debian_sid::command("llama-bench", backends)?;
    bench.args(["--threads", "1", "--repetitions", "1", "--no-warmup", "--output", "none"]);
    bench.args(["--n-prompt", "4", "--n-gen", "2", "--model"]);
    bench.arg(Model::TINY.file("tiny").expect("a model can be written")).args(more);
    Some(bench)
}

/// It hands batches to libllama, and frees its context.
#[test]
fn a_program_that_generates_tokens() {
    let Some(program) = generation(&["cpu"], &[]) else { return };
    check_faults_in(&program, &["/batches.rs", "contexts.rs", "ffi/llama.rs", "positions.rs"]);
}

/// It sends its work to a server, by sockets.
#[test]
fn a_program_that_leaves_its_work_to_a_server() {
    let directory = tempfile::TempDir::new().unwrap();
    let Some(server) = RpcServer::start(directory.path(), "server.ggprof", &[]) else { return };
    let more = ["--rpc", &server.endpoint(), "--n-gpu-layers", "99"];
    let Some(program) = generation(&["cpu", "rpc"], &more) else { return };
    check_faults_in(&program, &["sockets.rs", "transfers.rs"]);
}

/// What programs ask the loader for is what they would find without the agent.
#[test]
fn a_program_that_asks_for_functions() {
    check_output(&mut Command::new(built::host_program("asks_for_ggml.c")), &["asked_for.rs"]);
}

/// Its backends have callbacks of its own, some of which stop their graphs.
#[test]
fn a_program_with_abort_callbacks() {
    let flags = ["-Wall", "-Werror", "-rdynamic", "-ldl"];
    let program = built::linked_program("changes_abort_callbacks.c", "program", &flags);
    let Some(libraries) = published_ggml::stripped(BEFORE_ANNOUNCED_OPS) else { return };
    let files = ["callbacks.rs", "abort_callback.rs", "ticking.rs", "ticks.rs"];
    check_output(Command::new(program).arg(libraries), &files);
}

/// Its output and exit code, for each step in files of these names.
fn check_output(program: &mut Command, files: &[&str]) {
    let plain = again(program).output().expect("the program starts");
    let run = |number: usize| {
        let mut program = faulty(program);
        let log = program.directory().join("steps");
        program.command.env("GGPROF_FAULT_AT", number.to_string()).env("GGPROF_FAULT_LOG", &log);
        let output = output_within(LIMIT, &mut program.command).expect("it ends");
        let text = std::fs::read_to_string(log).expect("the agent takes steps");
        let places = text.lines().map(str::to_owned).collect();
        (output, Steps { places, ended_runs: 0, whole_runs: 0 })
    };
    let (_, steps) = run(0);
    let chosen: Vec<usize> = files.iter().flat_map(|file| steps.chosen(file)).collect();
    assert!(!chosen.is_empty(), "it comes to none of {files:?}");
    println!("{} of {} steps", chosen.len(), steps.places.len());
    for number in chosen {
        let (output, _) = run(number);
        let same = (output.status, &output.stdout) == (plain.status, &plain.stdout);
        assert!(same, "step {number}, {}: {output:?}", steps.places[number - 1]);
    }
}

/// The child of a recorded program, and the fork itself. What is missing of the child is counted in its
/// own recording or in its parent's.
#[test]
fn a_program_whose_child_computes() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let run = |in_children: bool, number: usize| {
        let mut program = UnderAgent::new(built::host_program("forks_while_recording.c"));
        let log = program.directory().join("steps");
        program.command.arg(&libraries).env("LD_PRELOAD", built::checked_agent());
        program.command.env("GGPROF_FAULT_AT", number.to_string()).env("GGPROF_FAULT_LOG", &log);
        if in_children {
            program.command.env("GGPROF_FAULT_IN_CHILDREN", "1");
        }
        let output = output_within(LIMIT, &mut program.command).expect("it ends");
        assert!(output.status.success(), "step {number}: {output:?}");
        let text = std::fs::read_to_string(log).expect("there are steps");
        let places: Vec<String> = text.lines().map(str::to_owned).collect();
        (program, Steps { places, ended_runs: 0, whole_runs: 0 })
    };
    for (in_children, file) in [(false, "forking.rs"), (true, "")] {
        let (program, steps) = run(in_children, 0);
        assert_eq!(program.recordings().iter().map(whole_runs).sum::<usize>(), 10);
        // What every graph comes to fails in all the other programs.
        let mut chosen = steps.chosen(file);
        let mut places = BTreeSet::new();
        chosen.retain(|number| places.insert(&steps.places[number - 1]));
        assert!(!chosen.is_empty(), "it comes to none of {file:?}");
        println!("{} of {} steps", chosen.len(), steps.places.len());
        for number in chosen {
            let (program, taken) = run(in_children, number);
            let recordings = program.recordings();
            // Some steps depend on the time that passes.
            let to_fail = u64::from(number <= taken.places.len());
            let count = |kind: LossCounter| -> u64 {
                recordings.iter().map(|it| it.header.losses[kind as usize]).sum()
            };
            let (faults, children) = (count(LossCounter::Fault), count(LossCounter::ForkedChild));
            let whole: usize = recordings.iter().map(whole_runs).sum();
            let right = recordings.iter().all(|it| it.damage.is_empty() && it.header.active == 0)
                && match children {
                    0 => faults == to_fail && whole + faults as usize >= 10,
                    _ => children == 1 && whole == 5,
                };
            let place = &steps.places[number - 1];
            assert!(
                right,
                "step {number}, {place}: {whole} runs, {faults} faults, {children} lost"
            );
        }
    }
}

/// With `GGML_PROFILE` the program itself has its profile written. What fails then leaves the
/// recording behind.
#[test]
fn a_program_that_writes_its_profile() {
    let Some(program) = small(published_ggml::libraries(NEWEST)) else { return };
    let plain = again(&program).output().expect("the program starts");
    let run = |wish: (&str, &str)| {
        let mut program = faulty(&program);
        let directory = program.directory().to_owned();
        program.command.env_remove("GGPROF_SPOOL").env("GGML_PROFILE", directory.join("p.json"));
        program.command.env("TMPDIR", &directory).env("GGPROF_COMMAND", built::ggprof());
        program.command.env("GGPROF_FAULT_LOG", directory.join("steps")).envs([wish]);
        let output = output_within(LIMIT, &mut program.command).expect("it ends");
        let same = (output.status, &output.stdout) == (plain.status, &plain.stdout);
        assert!(same, "{wish:?}: {output:?}");
        let steps = std::fs::read_to_string(directory.join("steps")).expect("there are some");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (steps, names_in(&directory), said)
    };
    let (steps, left, _) = run(("GGPROF_FAULT_AT", ""));
    assert_eq!(left, ["p.json", "steps"]);
    for (number, place) in (1..).zip(steps.lines()) {
        if place.contains("delivery.rs") || place.contains("lifecycle.rs") {
            let (_, left, said) = run(("GGPROF_FAULT_AT", &number.to_string()));
            let is_there = left.iter().any(|name| name.ends_with(".ggprof") || name == "p.json");
            let told = is_there || said.contains("ggprof: nothing is recorded");
            assert!(told, "step {number}, {place}: {left:?} {said}");
        }
    }
}

/// The third fault switches the agent off, wherever it is then.
#[test]
fn a_program_with_too_many_faults() {
    let Some(program) = small(published_ggml::libraries(NEWEST)) else { return };
    let plain = again(&program).output().expect("the program starts");
    let steps = Steps::of(&program);
    let first: Vec<usize> = steps.chosen("observe/node.rs").into_iter().take(2).collect();
    for number in ["observe/split.rs", "observe/run.rs"].map(|file| steps.chosen(file)).concat() {
        let numbers = [&first[..], &[number]].concat();
        let place = &steps.places[number - 1];
        check_fault(&program, &plain, &numbers, &steps)
            .unwrap_or_else(|what| panic!("steps {numbers:?}, the last usually {place}: {what}"));
    }
}

/// Who asks for a stop waits for all that are inside.
#[test]
fn a_recording_can_be_stopped_after_a_fault() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let endless = |graphs: &str| {
        let mut workload = Command::new(built::workload());
        workload.arg(&libraries).args(["--threads", "1", "--layers", "1", "--graphs", graphs]);
        workload
    };
    let steps = Steps::of(&endless("5"));
    for file in ["observe/run.rs", "observe/split.rs", "recorder/mod.rs"] {
        let last = *steps.chosen(file).last().expect("the file has steps");
        let directory = tempfile::TempDir::new().unwrap();
        let session = Session::new(directory.path());
        let mut recorded = session.recorded(&["-o", "p.ggprof"], &endless("100000000"));
        recorded.env("GGPROF_AGENT", built::checked_agent());
        recorded.env("GGPROF_FAULT_AT", last.to_string());
        let running = Running::start(&mut recorded);
        session.wait_for(1);
        session.ctl_well(&["stop"]);
        let line = session.ctl_well(&["status"]);
        assert!(line.contains("  stopped  "), "{file}: {line}");
        drop(running);
    }
}

/// What goes wrong before anything is recorded is said at the end, by the process and not again by
/// each child that it forked.
#[test]
fn forked_children_do_not_repeat_what_their_parent_says() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "(exit 0); (exit 0); (exit 0); exit 0"]);
    let mut shell = faulty(&shell);
    shell.command.env("GGPROF_FAULT_AT", "4");
    let output = shell.run_well();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        said.matches("nothing is recorded, because of an internal fault").count(),
        1,
        "{said}"
    );
}
