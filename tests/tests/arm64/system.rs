//! In an emulated system, with pages of 4K and of 16K.

use ggprof_e2e::arm64;
use ggprof_e2e::arm64_system::{Ended, Pages, System};
use ggprof_e2e::model::Model;
use ggprof_e2e::published_ggml::{BEFORE_ANNOUNCED_OPS, NEWEST};
use ggprof_e2e::recording::Recording;
use ggprof_spool::layout::{ClockKind, CoveredHow, LossCounter};

use crate::{check_every_node, check_order, seen};

const BENCH: &str = "llama-bench --threads 2 --n-prompt 16 --n-gen 4 --repetitions 1 \
                     --model /tiny.gguf";
const COMPLETION: &str = "llama-completion --threads 1 -n 4 --temp 0 --no-warmup -no-cnv --no-perf \
                          -p a --model /tiny.gguf";

/// Programs of `host-programs/`, the graph runs of each of their processes, the fewest first, and how many
/// children could not be recorded.
const HAZARDS: [(&str, &[usize], u64); 9] = [
    ("throws_through_hook.cpp", &[5], 0),
    ("exits_at_once.c", &[3], 0),
    ("aborts.c", &[3], 0),
    ("forks_workers.c", &[3, 3, 3, 3, 4], 0),
    ("forks_while_recording.c", &[5, 5], 0),
    ("forks_before_ggml.c", &[2, 4], 0),
    ("forks_by_system_call.c", &[5], 1),
    ("forks_inside_a_graph.c", &[5], 1),
    ("execs.c", &[2, 5], 0),
];

fn system(pages: Pages) -> Option<System> {
    let mut system = System::new(pages)?;
    system.run("pages", "grep -m 1 KernelPageSize /proc/self/smaps");
    Some(system)
}

fn check_pages(ended: &Ended, pages: Pages) {
    let said = ended.ran("pages").out;
    let expected = match pages {
        Pages::Of4K => " 4 kB",
        Pages::Of16K => " 16 kB",
    };
    assert!(said.trim().ends_with(expected), "{said}");
}

/// Runs it without the agent and with it.
fn run_both(system: &mut System, name: &str, line: &str) {
    system.run(&format!("{name}-alone"), line);
    system.record(name, line);
}

/// The recordings of what ended as it ends without the agent.
fn recordings_of_same(ended: &Ended, name: &str) -> Vec<Recording> {
    let (alone, recorded) = (ended.ran(&format!("{name}-alone")), ended.ran(name));
    assert!(alone.code.is_some());
    assert_eq!(recorded.code, alone.code, "{name}: {recorded:?}\n{alone:?}");
    ended.recordings(name)
}

#[test]
fn programs_of_debian_are_recorded() {
    for pages in Pages::ALL {
        let Some(mut system) = system(pages) else { return };
        system.place(Model::TINY.file("tiny").expect("a model can be written"), "tiny.gguf");
        run_both(&mut system, "bench", BENCH);
        run_both(&mut system, "completion", COMPLETION);
        let ended = system.boot();
        check_pages(&ended, pages);

        let recordings = recordings_of_same(&ended, "bench");
        let [bench] = &recordings[..] else { panic!("{} recordings", recordings.len()) };
        assert_eq!(ended.ran("bench").code, Some(0));
        check_every_node(bench);
        check_order(bench);
        assert_eq!(bench.header.clock, Some(ClockKind::CycleCounter));
        assert_eq!(seen(bench), [CoveredHow::GotSlot; 2]);
        assert!(bench.runs.len() >= 5, "{} graph runs", bench.runs.len());

        let recordings = recordings_of_same(&ended, "completion");
        recordings.iter().for_each(check_every_node);
        assert_eq!(recordings.len(), 1);
        assert_eq!(ended.ran("completion").out, ended.ran("completion-alone").out);
    }
}

/// Forks, exceptions, ends of all kinds, and functions that are changed at their entries.
#[test]
fn hazards_do_the_same_and_are_recorded() {
    let [Some(newest), Some(older)] = [NEWEST, BEFORE_ANNOUNCED_OPS].map(arm64::published) else {
        return;
    };
    for pages in Pages::ALL {
        let Some(mut system) = system(pages) else { return };
        system.place(&newest, "newest");
        system.place(&older, "older");
        system.place(arm64::workload(), "workload");
        let words = "--threads 2 --graphs 3 --layers 2 --prompt 8";
        run_both(&mut system, "entries", &format!("/workload /older {words}"));
        for (source, ..) in HAZARDS {
            system.place(arm64::host_program(source), source);
            run_both(&mut system, source, &format!("/{source} /newest"));
        }
        let ended = system.boot();
        check_pages(&ended, pages);

        let recordings = recordings_of_same(&ended, "entries");
        let [entries] = &recordings[..] else { panic!("{} recordings", recordings.len()) };
        assert_eq!(ended.ran("entries").code, Some(0));
        check_every_node(entries);
        assert_eq!(seen(entries)[0], CoveredHow::InlineHook);
        for (source, runs, lost) in HAZARDS {
            check_hazard(&recordings_of_same(&ended, source), runs, lost, source);
        }
    }
}

fn check_hazard(recordings: &[Recording], runs: &[usize], lost: u64, source: &str) {
    let mut found: Vec<usize> = recordings.iter().map(|it| it.completed_runs().count()).collect();
    found.sort_unstable();
    assert_eq!(found, runs, "{source}");
    let children = LossCounter::ForkedChild as usize;
    assert_eq!(
        recordings.iter().map(|it| it.header.losses[children]).sum::<u64>(),
        lost,
        "{source}"
    );
    assert_eq!(recordings.iter().map(Recording::lost).sum::<u64>(), lost, "{source}");
}

/// What stands beside the agent's code, all of it; and the command. They take minutes to compile.
#[test]
fn the_agents_own_tests_pass_and_the_command_records() {
    if std::env::var_os("GGPROF_ARM64_UNIT_TESTS").is_none() {
        return;
    }
    for pages in Pages::ALL {
        let Some(mut system) = system(pages) else { return };
        system.place(Model::TINY.file("tiny").expect("a model can be written"), "tiny.gguf");
        system.place(arm64::agent_tests(), "tests");
        system.place(arm64::ggprof(), "ggprof");
        system.run("tests", &format!("/tests {}", arm64::WITHOUT_A_COMPILER.join(" ")));
        let run = format!(
            "export GGPROF_AGENT=/agent.so; /ggprof run --strict -o /tmp/p.ggprof -- {BENCH}"
        );
        system.run("run", &run);
        system.run("report", "/ggprof report /tmp/p.ggprof --by op");
        let ended = system.boot();
        check_pages(&ended, pages);
        for name in ["tests", "run", "report"] {
            let ran = ended.ran(name);
            assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
        }
        assert!(ended.ran("report").out.contains("MUL_MAT"));
    }
}
