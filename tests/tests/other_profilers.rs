//! Another profiler in the same process, before or after the agent in `LD_PRELOAD`, and a second
//! agent from another installation: the program runs, and is recorded once.

use std::path::Path;

use ggprof_e2e::under_agent::UnderAgent;
use ggprof_e2e::{built, published_ggml};

fn preloaded(libraries: &Path, list: &[&Path]) -> UnderAgent {
    let mut run = UnderAgent::new(built::host_program("several_schedulers.c"));
    run.command.arg(libraries).arg("p.json");
    let list: Vec<&str> = list.iter().map(|path| path.to_str().unwrap()).collect();
    run.command.env("LD_PRELOAD", list.join(":"));
    run
}

#[test]
fn a_second_profiler_that_also_preloads() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let (agent, other) = (built::agent(), built::host_library("second_profiler.c"));
    for list in [[agent.as_path(), &other], [&other, &agent]] {
        let mut run = preloaded(&libraries, &list);
        let output = run.run_well();
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(out.contains("the other profiler saw 9"), "{list:?}: {out}");
        assert_eq!(run.recording().completed_runs().count(), 9, "{list:?}");
    }
}

#[test]
fn a_second_profiler_before_libraries_that_only_their_user_sees() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let (agent, other) = (built::agent(), built::host_library("second_profiler.c"));
    for list in [[agent.as_path(), &other], [&other, &agent]] {
        let mut run = UnderAgent::workload(&libraries, &["--graphs", "3", "--threads", "1"]);
        let list: Vec<&str> = list.iter().map(|path| path.to_str().unwrap()).collect();
        run.command.env("LD_PRELOAD", list.join(":"));
        run.run_well();
        assert_eq!(run.recording().completed_runs().count(), 3, "{list:?}");
    }
}

#[test]
fn of_two_agents_one_records() {
    let Some(libraries) = published_ggml::libraries(published_ggml::NEWEST) else { return };
    let directory = tempfile::TempDir::new().unwrap();
    let (agent, other) = (built::agent(), directory.path().join("libggprof_agent.so"));
    std::fs::copy(&agent, &other).unwrap();
    for list in [[agent.as_path(), &other], [&other, &agent]] {
        let mut run = preloaded(&libraries, &list);
        run.run_well();
        assert_eq!(run.recording().completed_runs().count(), 9, "{list:?}");
    }
}
