//! Backends that belong neither to the CPU nor to a GPU: BLAS on the host, RPC to a server, and one
//! that computes late and fails.

use ggprof_e2e::built;
use ggprof_e2e::debian_sid;
use ggprof_e2e::model::Model;
use ggprof_e2e::recording::{Recording, Split};
use ggprof_e2e::source_ggml;
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_spool::layout::{Covered, CoveredHow, CoveredWhy, MEASURED_HOST, MEASURED_SERIALIZED};
use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The numbers of all backends with a name; each context has its own.
fn numbers(recording: &Recording, name: &str) -> BTreeSet<u32> {
    let named = recording.backends.iter().filter(|b| recording.text(b.name).starts_with(name));
    named.map(|backend| backend.backend).collect()
}

fn splits_on<'r>(recording: &'r Recording, backend: &str) -> Vec<&'r Split> {
    let numbers = numbers(recording, backend);
    recording.splits.values().filter(|split| numbers.contains(&split.begin.backend)).collect()
}

#[test]
fn each_product_left_to_blas_is_recorded() {
    let Some(bench) = debian_sid::command("llama-bench", &["cpu", "blas"]) else { return };
    let model = Model::TINY.file("tiny").expect("a model can be written");
    let mut program = UnderAgent::of(bench);
    program.command.env("OPENBLAS_NUM_THREADS", "1");
    // Weights that the CPU repacked are its own; a large batch is what BLAS is good for.
    program.command.args(["--threads", "1", "--n-prompt", "128", "--n-gen", "0", "--repack", "0"]);
    program.command.args(["--repetitions", "1", "--model"]).arg(model);
    program.run_well();
    let recording = program.recording();
    assert_eq!(recording.lost(), 0);
    let splits = splits_on(&recording, "BLAS");
    assert!(!splits.is_empty());
    for split in &splits {
        assert_eq!(recording.recorded_positions(split), recording.working_positions(split));
        for op in &split.ops {
            assert_eq!(recording.op_name(split, op.position), "MUL_MAT");
            assert_eq!(op.measured, MEASURED_HOST);
        }
    }
    let of_ops = |covered: &&ggprof_spool::layout::Coverage| {
        (covered.what, covered.how) == (Covered::Ops as u16, CoveredHow::NodeByNode as u8)
    };
    let covered = recording.coverage.iter().find(of_ops).expect("the coverage of BLAS");
    assert_eq!(covered.why, CoveredWhy::LeftToLibrary as u32);
    let library = recording.text(covered.detail);
    assert!(library.starts_with("openblas") && library.contains("blas.so"), "{library:?}");
}

/// How ops of a backend are seen, the same in all contexts.
fn how_ops(recording: &Recording, backend: &str) -> Vec<u8> {
    let numbers = numbers(recording, backend);
    let all = recording.coverage.iter().filter(|covered| numbers.contains(&covered.backend));
    let ops = all.filter(|covered| covered.what == Covered::Ops as u16);
    ops.map(|covered| covered.how).collect::<BTreeSet<u8>>().into_iter().collect()
}

/// The graph runs whose results the program waited for.
fn waited_for(program: &UnderAgent) -> BTreeSet<u64> {
    let [spool] = &*program.files() else { panic!("one recording") };
    let converted = program.directory().join("converted.json");
    let mut convert = Command::new(built::ggprof());
    let status = convert.arg("convert").arg(spool).arg("-o").arg(&converted).status();
    assert!(status.expect("ggprof starts").success());
    let text = std::fs::read_to_string(converted).expect("it was written");
    let trace: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let tasks = trace["ggprof"]["host_tasks"].as_array().expect("a list");
    let waits = tasks.iter().filter(|task| task[0] == "Wait");
    waits.map(|wait| wait[3].as_u64().expect("a graph run")).collect()
}

#[test]
fn rpc_is_recorded_on_both_sides() {
    let Some(server) = debian_sid::command("ggml-rpc-server", &["cpu", "rpc"]) else { return };
    let model = Model::TINY.file("tiny").expect("a model can be written");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.expect("a free port").port().to_string();
    let mut server = UnderAgent::of(server);
    server.command.args(["--host", "127.0.0.1", "--threads", "1", "--port", &port]);
    let mut serving = server.command.stdout(Stdio::null()).spawn().expect("the server starts");
    let answers = || TcpStream::connect(format!("127.0.0.1:{port}")).is_ok();
    while !answers() {
        assert_eq!(serving.try_wait().expect("it is our child"), None, "the server ended");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut sides = Vec::new();
    for serialize in ["0", "1"] {
        let bench = debian_sid::command("llama-bench", &["cpu", "rpc"]).expect("as before");
        let mut client = UnderAgent::of(bench);
        client.command.env("GGPROF_SERIALIZE", serialize);
        client.command.args(["--threads", "1", "--n-prompt", "16", "--n-gen", "2"]);
        client.command.args(["--repetitions", "1", "--n-gpu-layers", "99"]);
        client.command.args(["--rpc", &format!("127.0.0.1:{port}"), "--model"]).arg(&model);
        client.run_well();
        if serialize == "0" {
            assert_eq!(waited_for(&client), (0..client.recording().runs.len() as u64).collect());
        }
        sides.push(client.recording());
    }
    serving.kill().and_then(|()| serving.wait()).expect("the server can be ended");
    let whole = splits_on(&sides[0], "RPC");
    assert!(!whole.is_empty() && whole.iter().all(|split| split.ops.is_empty()));
    assert_eq!(how_ops(&sides[0], "RPC"), [CoveredHow::Not as u8]);
    assert_eq!(how_ops(&sides[1], "RPC"), [CoveredHow::Serialized as u8]);
    for split in splits_on(&sides[1], "RPC") {
        assert_eq!(sides[1].recorded_positions(split), sides[1].working_positions(split));
        assert!(split.ops.iter().all(|op| op.measured == MEASURED_SERIALIZED));
    }
    // What the clients left to the server is what it computed.
    let server = server.recording();
    let computed = server.runs.keys().map(|&run| server.computed_in(run)).sum::<usize>();
    let left_to_it = sides.iter().flat_map(|side| {
        splits_on(side, "RPC").into_iter().map(|split| side.working_positions(split).len())
    });
    assert_eq!(computed, left_to_it.sum::<usize>());
}

#[test]
fn a_backend_that_computes_late_is_recorded_per_split_or_serialized() {
    let Some(program) = source_ggml::linked_into("late_backend.c") else { return };
    let alone = std::process::Command::new(&program).output().expect("the program starts");
    for (serialize, how) in [("0", CoveredHow::Not), ("1", CoveredHow::Serialized)] {
        let mut recorded = UnderAgent::new(&program);
        recorded.command.env("GGPROF_SERIALIZE", serialize);
        let output = recorded.run_well();
        assert_eq!(output.stdout, alone.stdout, "the same results and the same errors");
        let recording = recorded.recording();
        assert_eq!(recording.lost(), 0);
        assert_eq!(how_ops(&recording, "Late"), [how as u8]);
        let splits = splits_on(&recording, "Late");
        let ends = splits.iter().filter_map(|split| split.end.as_ref());
        let statuses: Vec<i32> = ends.map(|end| end.status).collect();
        assert_eq!(statuses, [0, 0, -1, 0], "two graphs, one that fails, one without nodes");
        let ops: Vec<usize> = splits.iter().map(|split| split.ops.len()).collect();
        // The failing graph fails at its first node.
        assert_eq!(ops, if serialize == "1" { [3, 3, 1, 0] } else { [0; 4] });
        let all = splits.iter().flat_map(|split| &split.ops);
        assert!(all.into_iter().all(|op| op.measured == MEASURED_SERIALIZED));
    }
}
