//! Slow programs whose cause is where their work is done: beside a server that is faster than the
//! client's processor, and on Mesa's software device, which is slower than any.
//!
//! `GGPROF_GAINS=3` makes each test print what following the advice brought, of what was promised.

use std::path::{Path, PathBuf};
use std::process::Command;

use ggprof_e2e::asked::{ask, list};
use ggprof_e2e::explained::{
    Recorded, check, check_named, check_without, named_first, print_gain, recording,
};
use ggprof_e2e::model::Model;
use ggprof_e2e::node_llama::Generation;
use ggprof_e2e::rpc::{self, RpcServer};
use ggprof_e2e::{debian_sid, published_ggml, tool};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Large enough that computing takes longer than talking to a server.
const EXPERTS: Model = Model {
    layers: 4,
    embedding: 512,
    feed_forward: 1024,
    heads: 8,
    kv_heads: 4,
    vocabulary: 1024,
    experts: Some((8, 2)),
    is_quantized: true,
};

/// What `explain` says of a client and its servers together.
fn beside_servers(model: &Path, servers: usize, arguments: &[&str]) -> Option<Value> {
    let directory = TempDir::new().unwrap();
    let start = |at: usize| RpcServer::start(directory.path(), &format!("{at}.ggprof"), &[]);
    let servers: Vec<RpcServer> = (0..servers).map(start).collect::<Option<_>>()?;
    let endpoints: Vec<String> = servers.iter().map(RpcServer::endpoint).collect();
    let client = rpc::slow_client(model, &endpoints, arguments)?;
    let mut files = vec![directory.path().join("client.ggprof")];
    let output = recording(&client, &files[0]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    files.extend(servers.into_iter().map(RpcServer::end));
    // A server that was left nothing to compute has no recording.
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).filter(|it| it.exists()).collect();
    Some(ask(&files, &["explain"]))
}

/// What is named first says this.
#[track_caller]
fn check_words(explained: &Value, words: &str) {
    let first = named_first(explained);
    assert!(first["sentence"].as_str().is_some_and(|it| it.contains(words)), "{first:#}");
}

#[test]
fn layers_beside_a_faster_server() {
    let model = Model::SMALL.file("small").unwrap();
    let with = |layers: &str| {
        beside_servers(&model, 1, &["-ngl", layers, "--n-prompt", "64", "--n-gen", "0"])
    };
    let Some(explained) = with("6") else { return };
    check(&explained, "R1", "pp64", "-ngl 13 ");
    check_words(&explained, "the CPU computes layers 0 to 6 of 12 while");
    print_gain("layers beside a server", "pp", || with("6").unwrap(), || with("13").unwrap());
}

#[test]
fn experts_beside_a_faster_server() {
    let model = EXPERTS.file("experts").unwrap();
    let with = |words: &[&str]| {
        let all = ["-ngl", "99", "--n-prompt", "64", "--n-gen", "0"];
        beside_servers(&model, 1, &[&all, words].concat())
    };
    let Some(explained) = with(&["-ot", "exps=CPU"]) else { return };
    check(&explained, "R1", "pp64", "-ot");
    check_words(&explained, "the experts of 4 of 4 layers");
    let staged = || with(&["-ot", "exps=CPU"]).unwrap();
    print_gain("experts beside a server", "pp", staged, || with(&[]).unwrap());
    print_gain("-ncmoe", "pp", || with(&["-ncmoe", "2"]).unwrap(), || with(&[]).unwrap());
}

#[test]
fn one_server_of_two_is_idle() {
    let model = Model::SMALL.file("small").unwrap();
    // Many tokens at once, so that the server computes for most of the time also on a busy machine.
    let words = ["-ngl", "99", "-ts", "1/0", "--n-prompt", "128", "--n-gen", "0"];
    let Some(explained) = beside_servers(&model, 2, &words) else { return };
    check(&explained, "R18", "pp128", "-ts");
    check_words(&explained, "RPC1 has nothing to do");
}

/// Debian sid's llama-bench with Mesa's software device.
fn on_vulkan(words: &[&str]) -> Option<Command> {
    model_on_vulkan(&Model::TINY.file("tiny").unwrap(), words)
}

fn model_on_vulkan(model: &Path, words: &[&str]) -> Option<Command> {
    let device = published_ggml::vulkan_device()?;
    let mut command = debian_sid::command("llama-bench", &["cpu", "vulkan"])?;
    command.env("VK_ICD_FILENAMES", device).env("GGML_VK_VISIBLE_DEVICES", "0");
    command.arg("-m").arg(model).args(["-t", "1", "-r", "1"]);
    command.args(words);
    Some(command)
}

/// libllama asked the device for its memory, so it is known that a layer more fits.
fn check_room(explained: &Value) {
    let more = |row: &&Value| row["more_bytes"].as_u64().is_some();
    let more: Vec<&Value> = list(explained, "what_if").iter().filter(more).collect();
    assert!(!more.is_empty() && more.iter().all(|row| row["fits"] == "yes"), "{explained:#}");
    let said = explained["device_memory"].to_string();
    assert!(said.contains("are free beside what this program has"), "{said}");
}

#[test]
fn a_device_that_is_slower_than_the_processor() {
    let with = |layers: &str| on_vulkan(&["-p", "0", "-n", "8", "-ngl", layers]);
    let Some(command) = with("3") else { return };
    let explained = Recorded::of(command).explained();
    check(&explained, "R23", "tg8", "-ngl 0");
    check_room(&explained);
    let explained = |layers: &str| Recorded::of(with(layers).unwrap()).explained();
    print_gain("a slower device", "tg", || explained("3"), || explained("0"));
}

/// So much to copy that nothing else counts, but what a device in software takes to compute.
const HEAVY: Model = Model {
    layers: 1,
    embedding: 1024,
    feed_forward: 8192,
    heads: 8,
    kv_heads: 8,
    vocabulary: 1024,
    experts: None,
    is_quantized: false,
};

/// The bytes of weights that were copied in generation.
fn weights_copied(explained: &Value) -> u64 {
    let is_it = |row: &&Value| row["tensors"] == "weights" && row["phase"] == "generation";
    let rows = list(explained, "copies").iter().filter(is_it);
    rows.filter_map(|row| row["bytes"].as_u64()).sum()
}

#[test]
fn weights_copied_for_every_token() {
    let model = HEAVY.file("heavy").unwrap();
    let with = |layers: &str| {
        let mut command = model_on_vulkan(&model, &["-p", "0", "-n", "4", "-ngl", layers])?;
        // Otherwise a single token's products stay on the CPU.
        command.env("GGML_OP_OFFLOAD_MIN_BATCH", "1");
        Some(Recorded::of(command).explained())
    };
    let Some(explained) = with("0") else { return };
    // Of a device in software, copying takes 4 to 10 % of the time.
    check_named(&explained, "R5", "tg4", "-ngl");
    let advised = with("99").unwrap();
    check_without(&advised, "R5");
    // All of the promise: nothing is left to copy.
    assert!(weights_copied(&explained) >= 4 * HEAVY.weight_bytes() / 2, "{explained:#}");
    assert_eq!(weights_copied(&advised), 0, "{advised:#}");
    print_gain("copied weights", "tg", || with("0").unwrap(), || with("99").unwrap());
}

#[test]
fn pipelines_that_no_warm_up_compiled() {
    let with = |words: &[&str]| on_vulkan(&[&["-p", "0", "-n", "4", "-ngl", "99"], words].concat());
    let Some(command) = with(&["--no-warmup"]) else { return };
    check(&Recorded::of(command).explained(), "R17", "tg4", "warm up");
    let explained = |words: &[&str]| Recorded::of(with(words).unwrap()).explained();
    print_gain("pipelines", "tg", || explained(&["--no-warmup"]), || explained(&[]));
}

/// Layers in which there is little to compute besides attention.
const MANY_LAYERS: Model = Model {
    layers: 8,
    embedding: 64,
    feed_forward: 64,
    heads: 2,
    kv_heads: 2,
    vocabulary: 288,
    ..Model::TINY
};

/// On the Vulkan backend of spring 2026, which has no attention for such a cache. A device in software is
/// slower at it than the CPU, so following the advice brings no time, but the op to the device.
#[test]
fn a_type_of_the_cache_that_the_device_lacks() {
    let Some((_, environment)) = published_ggml::vulkan_libraries("3.18.1") else { return };
    let model = MANY_LAYERS.file("many-layers").unwrap();
    let generation = Generation {
        version: "3.18.1",
        model: &model,
        tokens: 8,
        threads: 1,
        vulkan_layers: Some(99),
    };
    let with = |wishes: Value| {
        let mut command = tool::fetched("node-llama-cpp", generation.command())?;
        command.envs(environment.clone()).env("GENERATE_WISHES", wishes.to_string());
        Some(Recorded::of(command).ask(&["explain", "--phase", "tg"]))
    };
    let staged = with(json!({
        "flashAttention": true,
        "experimentalKvCacheKeyType": "Q5_1",
        "experimentalKvCacheValueType": "Q5_1",
    }));
    let Some(explained) = staged else { return };
    check_named(&explained, "R1", "tg", "-ctk f16");
    check_words(&explained, "the CPU computes FLASH_ATTN_EXT in 8 layers");
    let because = named_first(&explained)["because"].as_str().unwrap();
    assert!(because.contains("which the device does not support"), "{because}");
    let advised = with(json!({"flashAttention": true})).unwrap();
    check_without(&advised, "R1");
}
