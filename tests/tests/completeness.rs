//! Every node that is computed is in the recording, with its name and shape, and
//! the times of ops and waits explain the time of the graph.

use ggprof_e2e::built;
use ggprof_e2e::published_ggml::{self, NEWEST, VERSIONS};
use ggprof_e2e::recording::{Recording, Split};
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_spool::layout::{Covered, CoveredHow};

/// `computed=` of the workload's line for a kind of graph.
fn expected(output: &std::process::Output, kind: &str) -> usize {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with(&format!("graph kind={kind} ")));
    let number = line.and_then(|line| line.rsplit_once("computed=")).map(|(_, number)| number);
    number.and_then(|number| number.parse().ok()).expect("the workload says what it computes")
}

fn check_every_node_recorded(recording: &Recording) {
    assert_eq!(recording.damage, []);
    assert_eq!(recording.lost(), 0, "{:?}", recording.header.losses);
    for split in recording.splits.values() {
        let working = recording.working_positions(split);
        assert!(!working.is_empty());
        assert_eq!(recording.recorded_positions(split), working, "split {}", split.begin.split);
    }
}

#[test]
fn every_node_of_every_graph_is_recorded() {
    for version in VERSIONS {
        let Some(libraries) = published_ggml::libraries(version) else { continue };
        for threads in ["1", "2"] {
            let arguments = ["--graphs", "12", "--threads", threads];
            let mut workload = UnderAgent::workload(&libraries, &arguments);
            let output = workload.run_well();
            let recording = workload.recording();
            check_every_node_recorded(&recording);
            assert_eq!(recording.completed_runs().count(), 12, "{version}");
            for (number, (run, end)) in recording.completed_runs().enumerate() {
                let kind = if number == 0 { "prompt" } else { "token" };
                assert_eq!(recording.computed_in(run.begin.run), expected(&output, kind));
                assert_eq!((end.status, end.splits), (0, 1));
            }
        }
    }
}

#[test]
fn ops_are_seen_by_ticks_where_nothing_announces_them() {
    let version = published_ggml::BEFORE_ANNOUNCED_OPS;
    let Some(libraries) = published_ggml::stripped(version) else { return };
    for threads in ["1", "2"] {
        let arguments = ["--graphs", "5", "--threads", threads];
        let mut workload = UnderAgent::workload(&libraries, &arguments);
        workload.run_well();
        let recording = workload.recording();
        check_every_node_recorded(&recording);
        let by_ticks = recording.coverage.iter().any(|covered| {
            (covered.what, covered.how) == (Covered::Ops as u16, CoveredHow::AbortCallback as u8)
        });
        assert!(by_ticks, "{:?}", recording.coverage);
    }
}

#[test]
fn experts_are_recorded() {
    for version in VERSIONS {
        let Some(libraries) = published_ggml::libraries(version) else { continue };
        let arguments = ["--graphs", "4", "--experts", "8"];
        let mut workload = UnderAgent::workload(&libraries, &arguments);
        workload.run_well();
        let recording = workload.recording();
        check_every_node_recorded(&recording);
        let split = recording.splits.values().next().expect("a split");
        let experts =
            split.ops.iter().filter(|op| recording.op_name(split, op.position) == "MUL_MAT_ID");
        assert_eq!(experts.count(), 3 * 4, "{version}");
    }
}

#[test]
fn nodes_carry_names_shapes_and_producers() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let mut workload =
        UnderAgent::workload(&libraries, &["--graphs", "2", "--prompt", "5", "--layers", "1"]);
    workload.run_well();
    let recording = workload.recording();
    let split = recording.splits.values().next().expect("the prompt's split");
    let shape = &recording.shapes[&split.begin.shape];
    let named = |name: &str| {
        let position =
            shape.iter().position(|node| recording.text(recording.nodes[node].0.name) == name);
        position.unwrap_or_else(|| panic!("no node {name}"))
    };
    let position = named("Qcur-0");
    let (node, sources) = &recording.nodes[&shape[position]];
    assert_eq!(recording.text(node.op_name), "MUL_MAT");
    assert_eq!(node.ne, [256, 5, 1, 1]);
    assert_eq!(recording.text(sources[0].name), "blk.0.attn_q.weight");
    assert_eq!((sources[0].ne, sources[0].nodes_back), ([256, 256, 1, 1], 0));
    assert_eq!(recording.text(sources[1].name), "attn_norm-0");
    assert_eq!(position - sources[1].nodes_back as usize, named("attn_norm-0"));
    let silu = recording.nodes.values().find(|(node, _)| recording.text(node.op_name) == "UNARY");
    assert_eq!(silu.map(|(node, _)| recording.text(node.op_detail)), Some("SILU"));
}

#[test]
fn fused_nodes_are_named_together() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let mut workload = UnderAgent::workload(&libraries, &["--graphs", "2", "--layers", "3"]);
    workload.run_well();
    let recording = workload.recording();
    for split in recording.splits.values() {
        let fused: Vec<Vec<&str>> = split
            .ops
            .iter()
            .filter(|op| op.fused)
            .map(|op| &recording.fusions[&(split.begin.shape, op.position)])
            .map(|members| members.iter().map(|&at| recording.op_name(split, at)).collect())
            .collect();
        assert_eq!(fused, vec![vec!["RMS_NORM", "MUL"]; 6]);
    }
}

#[test]
fn a_graph_of_one_fused_pair_is_recorded_each_time() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let mut program = UnderAgent::new(built::host_program("fused_pair_only.c"));
    program.command.arg(libraries);
    program.run_well();
    let recording = program.recording();
    check_every_node_recorded(&recording);
    let computed: Vec<usize> =
        recording.runs.keys().map(|&run| recording.computed_in(run)).collect();
    assert_eq!(computed, [2; 5]);
}

#[test]
fn ops_and_waits_explain_the_graphs_time() {
    for version in VERSIONS {
        let Some(libraries) = published_ggml::libraries(version) else { continue };
        let arguments = ["--graphs", "6", "--prompt", "64", "--embd", "512", "--layers", "4"];
        for threads in ["1", "2"] {
            let mut workload = UnderAgent::workload(&libraries, &arguments);
            workload.command.args(["--threads", threads]).env("GGPROF_THREADS", "1");
            workload.run_well();
            let recording = workload.recording();
            let splits = recording.splits.values();
            let shares: Vec<f64> = splits.map(|split| explained(&recording, split)).collect();
            let text = format!("{version}, {threads} threads, explained: {shares:.4?}");
            println!("{text}");
            assert!(shares.iter().all(|share| *share < 1.001), "{text}");
            let all = shares.iter().sum::<f64>() / shares.len() as f64;
            assert!(all > 0.95, "{text}");
        }
    }
}

/// How much of its threads' time, each from its first op to the end of the split, the ops and
/// their waits make up.
fn explained(recording: &Recording, split: &Split) -> f64 {
    let end = split.end.as_ref().expect("the split ended");
    let shares = recording.shares.iter().filter(|share| share.split == split.begin.split);
    let mut begins = std::collections::BTreeMap::<u16, u64>::new();
    for share in shares {
        let begin = begins.entry(share.thread).or_insert(share.start);
        *begin = share.start.min(*begin);
    }
    let wall = end.ticks - split.begin.ticks;
    let time: u64 = begins.values().map(|begin| wall - begin).sum();
    split.ops.iter().map(|op| op.busy_sum + op.wait_sum).sum::<u64>() as f64 / time as f64
}

#[test]
fn thread_shares_add_up_to_their_op() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let mut workload = UnderAgent::workload(&libraries, &["--graphs", "3", "--threads", "2"]);
    workload.command.env("GGPROF_THREADS", "1");
    workload.run_well();
    let recording = workload.recording();
    assert!(recording.header.threads_asked);
    for split in recording.splits.values() {
        for op in &split.ops {
            let shares: Vec<_> = recording
                .shares
                .iter()
                .filter(|share| (share.split, share.position) == (op.split, op.position))
                .collect();
            assert_eq!(shares.len(), usize::from(op.threads));
            let busy: u64 = shares.iter().map(|share| share.duration - share.inner_wait).sum();
            // Exact, but for the figures of a split longer than 32 bits of ticks.
            let rounded = (op.resolution - 1) * (1 + 2 * shares.len() as u64);
            assert!(busy.abs_diff(op.busy_sum) <= rounded, "{busy}, {op:?}");
            assert!(shares.iter().all(|share| share.os_thread != 0));
        }
    }
}

#[test]
fn contexts_on_several_threads_are_told_apart() {
    for version in VERSIONS {
        let Some(libraries) = published_ggml::libraries(version) else { continue };
        let arguments = ["--graphs", "8", "--contexts", "4", "--threads", "2", "--embd", "64"];
        let mut workload = UnderAgent::workload(&libraries, &arguments);
        let output = workload.run_well();
        let recording = workload.recording();
        check_every_node_recorded(&recording);
        let mut by_scheduler = std::collections::BTreeMap::<u32, Vec<u32>>::new();
        for (run, _) in recording.completed_runs() {
            by_scheduler.entry(run.begin.scheduler).or_default().push(run.begin.os_thread);
            let computed = recording.computed_in(run.begin.run);
            let kinds = [expected(&output, "prompt"), expected(&output, "token")];
            assert!(kinds.contains(&computed), "{version}: {computed} of {kinds:?}");
        }
        assert_eq!(by_scheduler.len(), 4, "{version}");
        for threads in by_scheduler.values() {
            assert_eq!(threads.len(), 8);
            assert!(threads.iter().all(|thread| *thread == threads[0]));
        }
    }
}

#[test]
fn libraries_opened_as_plugins_are_recorded() {
    for version in VERSIONS {
        let Some(libraries) = published_ggml::libraries(version) else { continue };
        let mut workload = UnderAgent::workload(&libraries, &["--graphs", "5", "--local"]);
        workload.run_well();
        let recording = workload.recording();
        check_every_node_recorded(&recording);
        assert_eq!(recording.completed_runs().count(), 5, "{version}");
    }
}
