//! A client and its RPC servers, each recorded on its own, on one axis of time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ggprof_e2e::built;
use ggprof_e2e::counting_proxy::CountingProxy;
use ggprof_e2e::model::Model;
use ggprof_e2e::other_clock::OtherClock;
use ggprof_e2e::rpc::{RpcServer, built_client, client};
use ggprof_e2e::source_rpc;
use serde_json::Value;
use tempfile::TempDir;

/// What `ggprof report` answers in JSON.
fn report(files: &[&Path]) -> Value {
    let mut ask = Command::new(built::ggprof());
    let output = ask.arg("report").args(files).args(["--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What `ggprof merge` writes as JSON.
fn merged(files: &[&Path], to: &Path) -> Value {
    let mut merge = Command::new(built::ggprof());
    let output = merge.arg("merge").args(files).arg("-o").arg(to).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&std::fs::read(to).unwrap()).unwrap()
}

fn rows<'v>(answer: &'v Value, table: &str) -> &'v [Value] {
    answer[table].as_array().unwrap_or_else(|| panic!("{table} in {answer:#}"))
}

fn number(row: &Value, column: &str) -> u64 {
    row[column].as_u64().unwrap_or_else(|| panic!("{column} in {row:#}"))
}

fn sum(answer: &Value, table: &str, column: &str) -> u64 {
    rows(answer, table).iter().map(|row| number(row, column)).sum()
}

fn graph_runs(answer: &Value) -> u64 {
    answer["graph_runs"]["count"].as_u64().unwrap()
}

/// A client and two servers.
struct Trio {
    directory: TempDir,
    client: PathBuf,
    servers: [PathBuf; 2],
}

impl Trio {
    fn record() -> Option<Trio> {
        let directory = TempDir::new().unwrap();
        let path = directory.path();
        let one = RpcServer::start(path, "one.ggprof", &[])?;
        let two = RpcServer::start(path, "two.ggprof", &[])?;
        let recording = path.join("client.ggprof");
        let endpoints = [one.endpoint(), two.endpoint()];
        let mut client = client(&recording, &endpoints, &["--n-prompt", "16", "--n-gen", "16"]);
        let output = client.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        Some(Trio { servers: [one.end(), two.end()], client: recording, directory })
    }

    fn files(&self) -> [&Path; 3] {
        [&self.client, &self.servers[0], &self.servers[1]]
    }
}

#[test]
fn a_client_and_two_servers_are_one_trace() {
    let Some(trio) = Trio::record() else { return };
    let alone = trio.files().map(|file| report(&[file]));
    let together = report(&trio.files());
    every_run_is_found(&alone, &together);
    steps_add_up(&together);
    nothing_is_said_to_be_missing(&alone[0], &together);
    other_clocks_are_found_out(&trio);
}

fn every_run_is_found(alone: &[Value; 3], together: &Value) {
    let links = rows(together, "remote_links");
    assert_eq!(links.len(), 2, "{links:#?}");
    for (link, server) in links.iter().zip(&alone[1..]) {
        assert_eq!(number(link, "matched"), number(link, "calls"), "{link:#}");
        assert_eq!(number(link, "matched"), graph_runs(server), "{link:#}");
        assert_eq!(number(link, "other_runs"), 0, "{link:#}");
        assert_eq!(number(link, "violations"), 0, "{link:#}");
        // Each run began after its call, and ended before its results were there; and all that was
        // received had been sent.
        assert!(number(link, "bounds") > 2 * number(link, "matched"), "{link:#}");
    }
    // What servers computed is part of the client's graph runs, and nothing is lost or counted twice.
    assert_eq!(graph_runs(together), graph_runs(&alone[0]));
    let ops = |answer: &Value| sum(answer, "backends", "ops");
    assert_eq!(ops(together), alone.iter().map(ops).sum::<u64>());
    let time = |answer: &Value| answer["time"]["sum_ns"].as_u64().unwrap();
    assert_eq!(time(together), alone.iter().map(time).sum::<u64>());
    assert_eq!(together["phases"], alone[0]["phases"], "the client's phases, unchanged");
}

fn steps_add_up(together: &Value) {
    let steps = rows(together, "remote_steps");
    for row in steps {
        let parts = ["serialising_ns", "wire_ns", "computing_ns", "waiting_ns"];
        let parts: u64 = parts.iter().map(|part| number(row, part)).sum();
        assert_eq!(parts, number(row, "total_ns"), "{row:#}");
    }
    assert_eq!(sum(together, "remote_steps", "steps"), sum(together, "remote_links", "matched"));
    // The servers' ops took no longer than the steps that they were part of.
    let computed: u64 = rows(together, "backends")
        .iter()
        .filter(|row| row["backend"].as_str().unwrap().starts_with("ggml-rpc-server"))
        .map(|row| number(row, "busy_ns"))
        .sum();
    assert!(computed <= sum(together, "remote_steps", "computing_ns"), "{steps:#?}");
}

fn nothing_is_said_to_be_missing(client: &Value, together: &Value) {
    assert!(client["warnings"].to_string().contains("Record it, too"), "{}", client["warnings"]);
    let warnings = together["warnings"].to_string();
    assert!(!warnings.contains("hand work") && !warnings.contains("not observed"), "{warnings}");
}

/// The starts of all ops of each server, by backend.
fn starts(merged: &Value) -> BTreeMap<u64, Vec<i64>> {
    let mut starts: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
    let owners = merged["ggprof"]["processes"]["backends"].as_array().unwrap();
    for record in merged["records"].as_array().unwrap() {
        let backend = record["backend_id"].as_u64().unwrap();
        if owners[backend as usize] != 0 {
            let start = record["start_ns"].as_i64().unwrap();
            starts.entry(backend).or_default().push(start);
        }
    }
    starts
}

/// The same servers on machines that were started at other times, whose clocks are 3 s off and run
/// faster and slower.
fn other_clocks_are_found_out(trio: &Trio) {
    let path = trio.directory.path();
    let away = [
        OtherClock { monotonic_ns: 7_000_000_000_000, realtime_ns: 3_000_000_000, ppm: 50 },
        OtherClock { monotonic_ns: 90_000_000_000, realtime_ns: -3_000_000_000, ppm: -50 },
    ];
    let moved = [path.join("moved-one.ggprof"), path.join("moved-two.ggprof")];
    for ((clock, from), to) in away.iter().zip(&trio.servers).zip(&moved) {
        clock.rewrite(from, to);
    }
    let files = [&*trio.client, &*moved[0], &*moved[1]];
    let together = report(&files);
    let links = rows(&together, "remote_links");
    let warnings = together["warnings"].to_string();
    assert!(!warnings.contains("time of day"), "{warnings}");
    let truth = starts(&merged(&trio.files(), &path.join("truth.json")));
    let found = starts(&merged(&files, &path.join("found.json")));
    assert_eq!((links.len(), truth.len(), found.len()), (2, 2, 2));
    for (link, (truth, found)) in links.iter().zip(truth.values().zip(found.values())) {
        assert_eq!(number(link, "matched"), number(link, "calls"), "{link:#}");
        assert_eq!(number(link, "violations"), 0, "{link:#}");
        let error_ns = number(link, "clock_error_ns");
        let off = truth.iter().zip(found).map(|(truth, found)| truth.abs_diff(*found)).max();
        assert_eq!(truth.len(), found.len());
        assert!(off.unwrap() <= error_ns, "off by {off:?}: {link:#}");
        println!("{} off by {off:?} ns, bound {error_ns} ns", link["endpoint"]);
    }
}

/// What a client said of a generation through a proxy: bytes by the report, and by the proxy.
fn bytes_of_generation(server: &RpcServer, directory: &Path, tokens: &str) -> (u64, u64) {
    let proxy = CountingProxy::before(server.endpoint());
    let recording = directory.join(format!("client-{tokens}.ggprof"));
    let arguments = ["--n-prompt", "0", "--n-gen", tokens];
    let output = client(&recording, &[proxy.endpoint()], &arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let recorded = merged_alone(&recording, &directory.join("alone.json"));
    each_connection_is_counted(&recorded, &proxy);
    let answer = report(&[&recording]);
    let of_phase = |row: &&Value| row["phase"] == "generation";
    let row = rows(&answer, "remote_traffic").iter().find(of_phase).unwrap();
    let reported = number(row, "sent_bytes") + number(row, "received_bytes");
    assert_eq!(number(row, "tokens"), tokens.parse::<u64>().unwrap());
    assert_eq!(number(row, "bytes_per_token"), reported / number(row, "tokens"));
    let counted = proxy.counted().iter().map(|it| it.sent() + it.received()).sum();
    (reported, counted)
}

/// The same facts as JSON.
fn merged_alone(recording: &Path, to: &Path) -> Value {
    let mut convert = Command::new(built::ggprof());
    let output = convert.arg("convert").arg(recording).arg("-o").arg(to).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&std::fs::read(to).unwrap()).unwrap()
}

/// The last byte of each way through each connection is the last that the proxy saw.
fn each_connection_is_counted(recorded: &Value, proxy: &CountingProxy) {
    let mut ends: BTreeMap<(u16, bool), u64> = BTreeMap::new();
    for transfer in recorded["ggprof"]["transfers"].as_array().unwrap() {
        assert_eq!(transfer["is_whole"], true);
        let port = number(transfer, "port") as u16;
        let key = (port, transfer["is_received"].as_bool().unwrap());
        let end = number(transfer, "offset") + number(transfer, "bytes");
        let known = ends.entry(key).or_default();
        *known = end.max(*known);
    }
    assert!(!ends.is_empty());
    for ((port, is_received), end) in ends {
        let counted = proxy.counted();
        let counted = counted.iter().find(|it| it.port == port).expect("the proxy saw it");
        let bytes = if is_received { counted.received() } else { counted.sent() };
        assert_eq!(bytes, end, "port {port}, received: {is_received}");
    }
}

#[test]
fn bytes_per_token_are_those_of_the_socket() {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    let Some(server) = RpcServer::start(path, "server.ggprof", &[]) else { return };
    let few = bytes_of_generation(&server, path, "4");
    let many = bytes_of_generation(&server, path, "12");
    // All else is the same in both.
    assert_eq!(many.0 - few.0, many.1 - few.1);
    assert!(many.0 > few.0);
}

/// The bytes of a token's logits, which nothing else that a server answers with comes up to.
const LOGITS: usize = 4 * Model::TINY.vocabulary as usize;

/// Tokens a second of a generation: by the report, by a proxy's clock, and by the client itself.
fn speeds_of_generation(server: &RpcServer, directory: &Path) -> [f64; 3] {
    let proxy = CountingProxy::before(server.endpoint());
    let recording = directory.join("client.ggprof");
    let arguments = ["--n-prompt", "0", "--n-gen", "96", "--no-warmup", "-o", "json"];
    let output = client(&recording, &[proxy.endpoint()], &arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).expect("llama-bench's JSON");
    let answer = report(&[&recording]);
    let [phase] = rows(&answer, "phases") else { panic!("{answer:#}") };
    let mut tokens: Vec<_> = proxy.counted().iter().flat_map(|it| it.answers_of(LOGITS)).collect();
    tokens.sort_unstable();
    assert_eq!(number(phase, "tokens"), tokens.len() as u64, "{phase:#}");
    // From the first token to the last by the proxy's clock, and from the first one's start by the others.
    let seconds = tokens[tokens.len() - 1].duration_since(tokens[0]).as_secs_f64();
    let counted = (tokens.len() - 1) as f64 / seconds;
    [phase["tokens_per_s"].as_f64().unwrap(), counted, said[0]["avg_ts"].as_f64().unwrap()]
}

/// Within five percent; again where a busy machine put one of them aside between two looks at the clock.
#[test]
fn tokens_per_second_are_those_of_the_socket() {
    const ATTEMPTS: usize = 5;
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    let Some(server) = RpcServer::start(path, "server.ggprof", &[]) else { return };
    let agree = |[reported, counted, own]: &[f64; 3]| {
        [counted, own].into_iter().all(|other| (reported / other - 1.0).abs() <= 0.05)
    };
    let mut found = Vec::new();
    while found.len() < ATTEMPTS && !found.last().is_some_and(agree) {
        found.push(speeds_of_generation(&server, path));
    }
    println!("tokens/s by the report, a proxy and the client: {found:?}");
    assert!(found.last().is_some_and(agree), "{found:?}");
}

#[test]
fn a_server_that_was_recorded_in_part() {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    let Some(server) = RpcServer::start(path, "part.ggprof", &["--graphs", "6..13"]) else {
        return;
    };
    let recording = path.join("client.ggprof");
    let arguments = ["--n-prompt", "16", "--n-gen", "16"];
    let output = client(&recording, &[server.endpoint()], &arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let server = server.end();
    let together = report(&[&recording, &server]);
    let [link] = rows(&together, "remote_links") else { panic!("{together:#}") };
    let recorded = graph_runs(&report(&[&server]));
    assert!(recorded > 0 && recorded < number(link, "calls"), "{link:#}");
    assert_eq!(number(link, "matched"), recorded, "{link:#}");
    assert_eq!(number(link, "violations"), 0, "{link:#}");
    assert_eq!(graph_runs(&together), graph_runs(&report(&[&recording])));
    // The same on another machine, where only the order tells which run is which.
    let moved = path.join("moved.ggprof");
    OtherClock { monotonic_ns: 5_000_000_000, realtime_ns: 3_000_000_000, ppm: 50 }
        .rewrite(&server, &moved);
    let truth = starts(&merged(&[&recording, &server], &path.join("truth.json")));
    let found = starts(&merged(&[&recording, &moved], &path.join("found.json")));
    let links = report(&[&recording, &moved]);
    let [link] = rows(&links, "remote_links") else { panic!("{links:#}") };
    assert_eq!((number(link, "matched"), number(link, "violations")), (recorded, 0), "{link:#}");
    let off = truth.values().flatten().zip(found.values().flatten());
    let off = off.map(|(truth, found)| truth.abs_diff(*found)).max();
    assert!(off.unwrap() <= number(link, "clock_error_ns"), "{off:?} {link:#}");
}

/// Waits until what a launcher records has computed so many graphs.
fn wait_for_runs(launcher: &mut Child, least: u64) {
    let id = launcher.id().to_string();
    loop {
        let mut status = Command::new(built::ggprof());
        let said = status.args(["ctl", "status", &id, "--format", "json"]).output().unwrap().stdout;
        let recorded: Value = serde_json::from_slice(&said).unwrap_or_default();
        if recorded[0]["graph_runs"].as_u64() >= Some(least) {
            return;
        }
        assert_eq!(launcher.try_wait().unwrap(), None, "it ended before");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_connection_that_breaks_and_comes_back() {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    let Some(server) = RpcServer::start(path, "server.ggprof", &[]) else { return };
    let [broken, whole] = [path.join("broken.ggprof"), path.join("whole.ggprof")];
    let endpoint = [server.endpoint()];
    // It is ended in the middle of its tokens, which come after two runs of its prompt.
    let mut first = client(&broken, &endpoint, &["--n-prompt", "16", "--n-gen", "100000"]);
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_runs(&mut first, 30);
    let killed = Command::new("kill").args(["-TERM", &first.id().to_string()]).status();
    assert!(killed.unwrap().success());
    first.wait().unwrap();
    let second = client(&whole, &endpoint, &["--n-prompt", "16", "--n-gen", "4"]).output().unwrap();
    assert!(second.status.success(), "{second:?}");
    let server = server.end();
    let together = report(&[&broken, &whole, &server]);
    let [one, other] = rows(&together, "remote_links") else { panic!("{together:#}") };
    // Links come with the most pairs first.
    assert_eq!(number(other, "calls"), graph_runs(&report(&[&whole])), "{other:#}");
    assert_eq!(number(other, "matched"), number(other, "calls"), "{other:#}");
    assert_eq!(
        (number(one, "violations"), number(other, "violations")),
        (0, 0),
        "{one:#} {other:#}"
    );
    // A client sends a graph only after the call has returned that left it to the server. So the last one of
    // the first client may never have been sent, or computed for nobody.
    assert!(number(one, "calls") - number(one, "matched") <= 1, "{one:#}");
    let matched = number(one, "matched") + number(other, "matched");
    assert!(graph_runs(&report(&[&server])) - matched <= 1, "{one:#} {other:#}");
}

#[test]
fn a_server_of_another_build() {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    let Some(server) = RpcServer::start_published(path, "server.ggprof") else { return };
    let recording = path.join("client.ggprof");
    let arguments = ["--n-prompt", "16", "--n-gen", "4"];
    let output = client(&recording, &[server.endpoint()], &arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let together = report(&[&recording, &server.end()]);
    let [link] = rows(&together, "remote_links") else { panic!("{together:#}") };
    assert_eq!(number(link, "matched"), number(link, "calls"), "{link:#}");
    assert_eq!((number(link, "other_runs"), number(link, "violations")), (0, 0), "{link:#}");
    assert!(number(link, "bounds") > 2 * number(link, "matched"), "{link:#}");
}

#[test]
fn older_protocols_are_the_same() {
    for (version, protocol) in source_rpc::PROTOCOLS {
        let Some(program) = source_rpc::program(version) else { return };
        let directory = TempDir::new().unwrap();
        let path = directory.path();
        let server = RpcServer::start_built(&program, path.join("server.ggprof"));
        let recording = path.join("client.ggprof");
        let graphs = 20;
        let output = built_client(&program, &recording, &server.endpoint(), graphs).output();
        let output = output.unwrap();
        assert!(output.status.success(), "protocol {protocol}: {output:?}");
        let server = server.end();
        let together = report(&[&recording, &server]);
        let [link] = rows(&together, "remote_links") else { panic!("{protocol}: {together:#}") };
        let found = (number(link, "calls"), number(link, "matched"), number(link, "other_runs"));
        assert_eq!(found, (graphs.into(), graphs.into(), 0), "protocol {protocol}: {link:#}");
        assert_eq!(number(link, "violations"), 0, "protocol {protocol}: {link:#}");
        assert!(number(link, "bounds") > 2 * number(link, "matched"), "{protocol}: {link:#}");
        // What JSON keeps of both is enough.
        let as_json = [path.join("client.json"), path.join("server.json")];
        merged_alone(&recording, &as_json[0]);
        merged_alone(&server, &as_json[1]);
        let of_json = report(&[&as_json[0], &as_json[1]]);
        assert_eq!(rows(&of_json, "remote_links"), rows(&together, "remote_links"));
        // The same on another machine.
        let moved = path.join("moved.ggprof");
        OtherClock { monotonic_ns: 5_000_000_000, realtime_ns: 3_000_000_000, ppm: 50 }
            .rewrite(&server, &moved);
        let together = report(&[&recording, &moved]);
        let [link] = rows(&together, "remote_links") else { panic!("{protocol}: {together:#}") };
        assert_eq!((number(link, "matched"), number(link, "violations")), (graphs.into(), 0));
    }
}
