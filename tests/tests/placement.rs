//! Why the processor computes what it does beside a device, between which memory tensors are
//! copied, and which experts are used: on Mesa's software device, and on one that must not be asked.

use std::collections::BTreeSet;
use std::process::Command;

use ggprof_e2e::model::Model;
use ggprof_e2e::node_llama::Generation;
use ggprof_e2e::published_ggml::{self, NEWEST};
use ggprof_e2e::recording::{Placed, Recording, Split};
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_e2e::{built, tool};
use ggprof_spool::layout::{self, ANSWER_OFFLOADS, ANSWER_SUPPORTS, Covered, CoveredHow};
use serde_json::Value;
use tempfile::TempDir;

const WEIGHTS: u8 = 1;

/// The workload on the processor and a Vulkan device.
fn record(arguments: &[&str]) -> Option<UnderAgent> {
    let (libraries, environment) = published_ggml::vulkan_libraries(NEWEST)?;
    let mut workload = UnderAgent::workload(&libraries, &["--threads", "2", "--split"]);
    workload.command.args(arguments).envs(environment);
    workload.run_well();
    Some(workload)
}

fn sound(program: &UnderAgent) -> Recording {
    let recording = program.recording();
    assert_eq!(recording.damage, []);
    assert_eq!(recording.lost(), 0);
    recording
}

fn backend(recording: &Recording, name: &str) -> u32 {
    let named = recording.backends.iter().find(|backend| recording.text(backend.name) == name);
    named.expect("a backend of this name").backend
}

fn splits_on<'r>(recording: &'r Recording, name: &str) -> impl Iterator<Item = &'r Split> {
    let backend = backend(recording, name);
    recording.splits.values().filter(move |split| split.begin.backend == backend)
}

/// What the report says, table by table.
fn report(program: &UnderAgent, by: &str) -> Value {
    let [file] = &program.files()[..] else { panic!("there is one recording") };
    report_of(file, by)
}

fn report_of(file: &std::path::Path, by: &str) -> Value {
    let mut command = Command::new(built::ggprof());
    let output = command.arg("report").arg(file).args(["--by", by, "--format", "json"]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows<'v>(report: &'v Value, table: &str) -> &'v [Value] {
    report[table].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn every_op_beside_a_device_is_asked_about_once() {
    let arguments = ["--graphs", "3", "--layers", "2", "--embd", "64", "--prompt", "3"];
    let Some(program) = record(&arguments) else { return };
    let recording = sound(&program);
    let (cpu, vulkan) = (backend(&recording, "CPU"), backend(&recording, "Vulkan0"));
    let (mut nodes, mut declined) = (BTreeSet::new(), 0);
    for split in splits_on(&recording, "CPU") {
        for position in recording.working_positions(split) {
            let node = recording.node_at(split, position).expect("it is described").node;
            nodes.insert((node, cpu));
            let Placed { sources, answers } = &recording.placements[&(node, cpu)];
            assert_eq!(sources.len(), recording.nodes[&node].1.len());
            assert!(sources.iter().all(|memory| recording.memory_kinds.contains_key(memory)));
            assert_eq!(answers.len(), 1);
            assert_eq!(answers[0].backend, vulkan);
            assert_eq!(answers[0].says & ANSWER_SUPPORTS, ANSWER_SUPPORTS);
            let has_weight = sources.iter().any(|it| recording.memory_kinds[it].usage == WEIGHTS);
            declined += usize::from(has_weight && answers[0].says & ANSWER_OFFLOADS == 0);
        }
    }
    assert!(declined > 0);
    assert_eq!(recording.placements.keys().copied().collect::<BTreeSet<_>>(), nodes);
    let covered = |entry: &&layout::Coverage| entry.what == Covered::Placement as u16;
    let covered: Vec<_> = recording.coverage.iter().filter(covered).collect();
    assert_eq!((covered.len(), covered[0].how), (1, CoveredHow::Asked as u8));
    assert_eq!(covered[0].backend, vulkan);

    let report = report(&program, "placement");
    let on_host = rows(&report, "on_host");
    let products = on_host.iter().filter(|row| row["op"] == "MUL_MAT");
    let reasons: BTreeSet<&str> = products.filter_map(|row| row["reason"].as_str()).collect();
    // Those of the attention itself have no weight.
    assert_eq!(reasons, BTreeSet::from(["neighbours", "weight_on_host_batch_small"]));
    let splits: u64 = on_host.iter().filter_map(|row| row["splits"].as_u64()).sum();
    assert_eq!(splits as usize, splits_on(&recording, "CPU").count());
}

#[test]
fn an_op_that_the_device_lacks_pays_for_its_copies() {
    // The second layer is on the device, but for one op.
    let arguments =
        ["--graphs", "2", "--layers", "2", "--embd", "64", "--prompt", "3", "--unsupported"];
    let Some(program) = record(&arguments) else { return };
    let report = report(&program, "placement");
    let on_host = rows(&report, "on_host");
    let lacking: Vec<&Value> =
        on_host.iter().filter(|row| row["reason"] == "unsupported").collect();
    assert_eq!(lacking.len(), 1, "{lacking:?}");
    assert_eq!(
        (&lacking[0]["op"], &lacking[0]["layers"]),
        (&"DIAG_MASK_ZERO".into(), &"0–1".into())
    );
    assert_eq!(lacking[0]["why"], "Vulkan0 cannot compute it");
    assert_eq!(lacking[0]["calls"], 4);
    // There and back.
    assert!(lacking[0]["copies"].as_u64() >= Some(4), "{lacking:?}");
    assert!(lacking[0]["copy_bytes"].as_u64() > Some(0));
}

#[test]
fn copies_name_their_memory_and_experts_their_uses() {
    // With 64 tokens ggml offloads the layer on the CPU, and copies the experts that are used, 0 and
    // 1, then 4 and 5. A single token uses 0 and 4, and stays.
    let arguments =
        ["--graphs", "3", "--layers", "1", "--embd", "64", "--prompt", "64", "--experts", "8"];
    let Some(program) = record(&arguments) else { return };
    let recording = sound(&program);
    for copy in recording.copies.iter().filter(|copy| copy.flags & layout::COPY_PARTIAL != 0) {
        let [source, target] =
            [copy.source_memory, copy.target_memory].map(|it| &recording.memory_kinds[&it.into()]);
        assert_eq!((recording.text(source.type_name), source.usage), ("CPU", WEIGHTS));
        assert_eq!(source.flags & layout::MEMORY_ON_HOST, layout::MEMORY_ON_HOST);
        assert_eq!((recording.text(target.type_name), target.flags), ("Vulkan0", 0));
    }
    let input = recording.copies.iter().find(|it| recording.text(it.source) == "inp_pos");
    assert_ne!(input.expect("it goes to the device").flags & layout::COPY_INPUT, 0);
    assert_eq!(recording.expert_uses.len(), 2, "a token each");
    for (of, counts) in &recording.expert_uses {
        assert_eq!((of.experts, of.tokens, of.tokens_read), (8, 1, 1));
        let uses: Vec<(u16, u16)> = counts.iter().map(|it| (it.expert, it.uses)).collect();
        assert_eq!(uses, [(0, 1), (4, 1)]);
    }

    let copies = report(&program, "copy");
    let of = |class: &str| -> Vec<&Value> {
        rows(&copies, "copies").iter().filter(|it| it["tensors"] == class).collect()
    };
    let experts = of("experts");
    assert_eq!(experts.len(), 1, "{copies}");
    assert_eq!(
        (&experts[0]["host_memory"], &experts[0]["copies"]),
        (&"pageable".into(), &6.into())
    );
    assert!(!of("inputs").is_empty() && !of("weights").is_empty());

    let experts = report(&program, "expert");
    let [by_choices, by_copies] = rows(&experts, "experts") else { panic!("{experts}") };
    assert_eq!(by_choices["uses_by_expert"], "2 0 0 0 2 0 0 0");
    assert_eq!(by_copies["uses_by_expert"], "1 1 0 0 1 1 0 0");
    let savings = rows(&experts, "expert_savings");
    assert_eq!(savings.last().map(|row| &row["experts"]), Some(&4.into()));
    assert!(savings.last().and_then(|row| row["saved_share"].as_f64()) > Some(0.99));
}

#[test]
fn large_batches_are_read_in_part() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let arguments =
        ["--graphs", "1", "--layers", "2", "--embd", "64", "--prompt", "700", "--experts", "8"];
    let mut program = UnderAgent::workload(&libraries, &arguments);
    program.run_well();
    let recording = sound(&program);
    // Both layers have the same choice, which is an input.
    assert_eq!(recording.expert_uses.len(), 1);
    let (of, counts) = &recording.expert_uses[0];
    assert_eq!((of.tokens, of.tokens_read), (700, 256));
    let uses: Vec<(u16, u16)> = counts.iter().map(|it| (it.expert, it.uses)).collect();
    let total: u16 = uses.iter().map(|(_, uses)| uses).sum();
    assert_eq!((uses.len(), total), (4, 512));
    // Nobody could have been asked.
    assert!(recording.placements.is_empty());
}

fn beside_a_device(way: &str) -> Option<UnderAgent> {
    let libraries = published_ggml::libraries(NEWEST)?;
    let mut program = UnderAgent::new(built::host_program("device_beside.c"));
    program.command.arg(libraries).args(["2", way]);
    Some(program)
}

/// A recording of a program whose device tells nothing; what it prints is the same as alone.
fn without_answers(way: &str) -> Option<Recording> {
    let mut program = beside_a_device(way)?;
    let mut plain = Command::new(program.command.get_program());
    let plain = plain.args(program.command.get_args()).output().unwrap();
    assert!(plain.status.success(), "{plain:?}");
    let output = program.run_well();
    assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&plain.stdout));
    let recording = sound(&program);
    assert!(!recording.placements.is_empty());
    assert!(recording.placements.values().all(|placed| placed.answers.is_empty()));
    Some(recording)
}

#[test]
fn a_device_that_crashes_when_asked_is_asked_in_a_child_only() {
    let Some(recording) = without_answers("crashes") else { return };
    let asked = recording.coverage.iter().find(|it| it.what == Covered::Placement as u16);
    let asked = asked.expect("it is told that nobody can be asked");
    assert_eq!(asked.how, CoveredHow::Not as u8);
    assert!(recording.why(asked).contains("crashed"), "{asked:?}");
}

/// A child shares the connection, and whatever it sent would be in the way of what the program sends.
#[test]
fn a_device_of_another_machine_is_not_asked_at_all() {
    let Some(recording) = without_answers("remote") else { return };
    let is_about_asking = |it: &layout::Coverage| it.what == Covered::Placement as u16;
    assert!(!recording.coverage.iter().any(is_about_asking), "nothing is missing");
}

#[test]
fn a_device_that_answers_is_believed() {
    let Some(mut program) = beside_a_device("answers") else { return };
    program.run_well();
    let recording = sound(&program);
    let answers = recording.placements.values().flat_map(|placed| &placed.answers);
    let answers: Vec<u32> = answers.map(|answer| answer.says & ANSWER_SUPPORTS).collect();
    assert_eq!(answers, [0, 0], "of two nodes");
    // The same choice in three graphs, which two threads used.
    assert_eq!(recording.expert_uses.len(), 3);
    for (of, counts) in &recording.expert_uses {
        assert_eq!((of.experts, of.tokens, of.tokens_read), (4, 3, 3));
        let uses: Vec<(u16, u16)> = counts.iter().map(|it| (it.expert, it.uses)).collect();
        assert_eq!(uses, [(0, 2), (1, 1), (3, 3)]);
    }
}

/// A model whose first layers are not on the device, generated from by a real program.
#[test]
fn layers_on_the_processor_are_there_because_of_their_weights() {
    let Some(device) = published_ggml::vulkan_device() else { return };
    let model = Model::TINY_EXPERTS.file("tiny-experts").unwrap();
    let generation = Generation {
        version: NEWEST,
        model: &model,
        tokens: 4,
        threads: 1,
        vulkan_layers: Some(2),
    };
    let Some(plain) = tool::fetched("node-llama-cpp", generation.command()) else { return };
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("p.ggprof");
    let mut command = Command::new(built::ggprof());
    command.arg("run").arg("-o").arg(&file).arg("--").arg(plain.get_program());
    command.args(plain.get_args()).env("VK_ICD_FILENAMES", device);
    let output = command.env("GGML_VK_VISIBLE_DEVICES", "0").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let report = report_of(&file, "placement");
    let on_host = rows(&report, "on_host");
    let find = |op: &str| {
        on_host.iter().find(|row| row["phase"] == "generation" && row["op"] == op).expect("a row")
    };
    let products = find("MUL_MAT_ID");
    assert_eq!(products["reason"], "weight_on_host_batch_small");
    assert!(products["layers"].as_str().is_some_and(|layers| layers.starts_with('0')));
    assert_eq!(find("FLASH_ATTN_EXT")["reason"], "cache_on_host");
    let input = on_host.iter().find(|row| row["module"] == "input").expect("a row");
    assert_eq!((&input["op"], &input["reason"]), (&"GET_ROWS".into(), &"graph_input".into()));
    let parts = rows(&report, "placement");
    let on = |backend: &str| parts.iter().any(|row| row["backend"] == backend);
    assert!(on("CPU") && on("Vulkan0"));
    let experts = report_of(&file, "expert");
    assert!(rows(&experts, "experts").iter().all(|row| row["seen_by"] == "choices"));
    assert!(!rows(&experts, "experts").is_empty());
}
