//! `--max-size`: the newest graph runs, whole, in a file and a process of limited size, however
//! the program ends.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use ggprof_e2e::recording::{Recording, Split};
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_e2e::{built, published_ggml};
use ggprof_spool::live::LiveSpool;

const LIMIT: u64 = 4 << 20;

fn limited(mut program: UnderAgent) -> UnderAgent {
    program.command.env("GGPROF_MAX_BYTES", LIMIT.to_string());
    program
}

fn workload(arguments: &[&str]) -> Option<UnderAgent> {
    let libraries = published_ggml::libraries(published_ggml::NEWEST)?;
    let small = ["--threads", "1", "--embd", "64"];
    Some(limited(UnderAgent::workload(&libraries, &[&small, arguments].concat())))
}

fn file(program: &UnderAgent) -> PathBuf {
    program.files().pop().expect("a recording")
}

/// Runs that are whole, with all of their nodes described; others were the oldest.
fn whole_runs(recording: &Recording) -> Vec<u32> {
    assert_eq!(recording.damage, []);
    let mut of_run = BTreeMap::<u32, Vec<&Split>>::new();
    for split in recording.splits.values() {
        of_run.entry(split.begin.run).or_default().push(split);
    }
    let whole = |run: u32, splits: u32| {
        let found = of_run.get(&run).map_or(&[][..], Vec::as_slice);
        found.len() == splits as usize
            && found.iter().all(|split| {
                let ops = split.end.is_some_and(|end| end.ops as usize == split.ops.len());
                // Names are empty where a description is missing.
                ops && recording.recorded_positions(split) == recording.working_positions(split)
                    && !recording.op_name(split, 0).is_empty()
            })
    };
    let ended = recording.completed_runs().map(|(run, end)| (run.begin.run, end.splits));
    ended.filter(|(run, splits)| whole(*run, *splits)).map(|(run, _)| run).collect()
}

/// What the reader makes of the file: exit code and the number of graph runs.
fn reported(program: &UnderAgent) -> (Option<i32>, String) {
    let mut report = Command::new(built::ggprof());
    let output = report.arg("report").arg(file(program)).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_newest_graph_runs_are_kept_whole() {
    let Some(mut program) = workload(&["--graphs", "3000"]) else { return };
    program.run_well();
    assert!(std::fs::metadata(file(&program)).unwrap().len() <= LIMIT);
    let recording = program.recording();
    assert_eq!((recording.header.graph_runs, recording.lost()), (3000, 0));
    assert!(recording.header.reused_blocks > 50);
    let runs = whole_runs(&recording);
    assert!(runs.len() > 500, "{}", runs.len());
    let newest: Vec<u32> = (3001 - runs.len() as u32..=3000).collect();
    assert_eq!(runs, newest, "without a gap up to the last");
    let (code, report) = reported(&program);
    assert_eq!(code, Some(0));
    let sentence = format!("the newest {} of 3000 graph runs", runs.len());
    assert!(report.contains(&sentence), "{report}");
}

#[test]
fn several_contexts_share_the_file() {
    let Some(mut program) = workload(&["--graphs", "1500", "--contexts", "3"]) else { return };
    program.run_well();
    let recording = program.recording();
    assert_eq!((recording.header.graph_runs, recording.lost()), (4500, 0));
    let mut of_scheduler = BTreeMap::<u32, Vec<u32>>::new();
    for run in whole_runs(&recording) {
        of_scheduler.entry(recording.runs[&run].begin.scheduler).or_default().push(run);
    }
    // Each context's runs in turn, none of them missing among its newest.
    let of_all = |scheduler: &u32| {
        let all = recording.runs.values().map(|run| run.begin);
        all.filter(|begin| begin.scheduler == *scheduler).map(|b| b.run).collect::<Vec<_>>()
    };
    for (scheduler, runs) in &of_scheduler {
        assert!(of_all(scheduler).ends_with(runs), "{scheduler}");
    }
    assert_eq!(reported(&program).0, Some(0));
}

#[test]
fn descriptions_are_limited_and_never_missing() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let host = built::host_program("distinct_graphs.c");
    let mut program = limited(UnderAgent::new(host));
    program.command.arg(libraries).arg("8000");
    let output = program.run_well();
    assert!(std::fs::metadata(file(&program)).unwrap().len() <= LIMIT);
    let recording = program.recording();
    assert_eq!((recording.header.graph_runs, recording.lost()), (8000, 0));
    let runs = whole_runs(&recording);
    assert!(runs.len() > 200 && runs.last() == Some(&8000), "{}", runs.len());
    assert!(runs.windows(2).all(|pair| pair[1] == pair[0] + 1));
    assert_eq!(reported(&program).0, Some(0));
    // The process has not grown since it was young, beyond what a table's growth takes.
    let text = String::from_utf8_lossy(&output.stdout);
    let kib = |key: &str| -> i64 {
        let rest = text.split_once(key).expect("the program says it").1;
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    assert!(kib("end=") - kib("early=") < 4096, "{text}");
}

/// While the program runs; `None` before it has a recording.
fn reused_blocks(program: &UnderAgent) -> Option<u64> {
    let file = program.files().pop()?;
    Some(LiveSpool::open(&file).ok()?.header().ok()?.reused_blocks)
}

#[test]
fn a_killed_program_leaves_whole_runs() {
    let rounds = std::env::var("GGPROF_KILLS").map_or(5, |n| n.parse().expect("a number"));
    let mut seed = u64::from(std::process::id());
    for round in 0..rounds {
        let Some(mut program) = workload(&["--graphs", "1000000"]) else { return };
        program.command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = program.command.spawn().unwrap();
        // When blocks are used again, and then at any moment.
        while reused_blocks(&program).unwrap_or(0) == 0 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(std::time::Duration::from_micros((seed >> 33) % 100_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let recording = program.recording();
        let runs = whole_runs(&recording);
        assert!(runs.len() > 300, "round {round}: {}", runs.len());
        assert!(runs.windows(2).all(|pair| pair[1] == pair[0] + 1), "round {round}");
        let begun = recording.header.graph_runs as u32;
        assert!(begun - runs.last().unwrap() <= 1, "round {round}: only the one under way");
        let (code, report) = reported(&program);
        assert_eq!(code, Some(0), "round {round}: {report}");
        let count = format!("newest {} of", runs.len());
        assert!(report.contains(&count), "round {round}: {count}: {report}");
    }
}
