//! What a Vulkan device did, by its own clock: on Mesa's software device, with the Vulkan
//! backends of ggml as published from June 2025 on. The first version imports Vulkan's functions
//! and goes through the graph twice, later ones fetch them and fuse nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use ggprof_e2e::built;
use ggprof_e2e::model::Model;
use ggprof_e2e::node_llama::Generation;
use ggprof_e2e::published_ggml::{self, NEWEST};
use ggprof_e2e::recording::{Recording, Split};
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_spool::layout::{
    COPY_DEVICE_TO_HOST, COPY_HOST_TO_DEVICE, Covered, CoveredHow, DeviceWork, NO_NODE, NONE,
    WORK_CONCURRENT, WORK_COPY, WORK_DIRECTION_BIT, WORK_FIRST_USE, WORK_KERNEL, WORK_SERIALIZED,
    WORK_UNTIMED, WORK_WHOLE_SPLIT,
};

const VERSIONS: [&str; 3] = ["3.9.0", "3.14.5", NEWEST];
const DENSE: [&str; 10] =
    ["--threads", "1", "--split", "--graphs", "4", "--layers", "4", "--embd", "64", "--prompt=3"];

/// The workload's recording, and what it wrote to standard error.
fn record(version: &str, mode: &str, arguments: &[&str]) -> Option<(Recording, String)> {
    record_with(version, &[("GGPROF_VULKAN", mode), ("GGML_VK_SYNC_LOGGER", "1")], arguments)
}

fn record_with(
    version: &str,
    wishes: &[(&str, &str)],
    arguments: &[&str],
) -> Option<(Recording, String)> {
    let (libraries, environment) = published_ggml::vulkan_libraries(version)?;
    let mut workload = UnderAgent::workload(&libraries, &[]);
    let words = arguments.iter().flat_map(|word| word.split('='));
    workload.command.args(words).envs(environment).envs(wishes.iter().copied());
    let output = workload.run_well();
    let left = std::fs::read_dir(workload.directory()).expect("its directory").flatten();
    let left: Vec<_> = left.filter(|entry| entry.path().is_dir()).collect();
    assert!(left.is_empty(), "the layer is taken away again: {left:?}");
    let recording = workload.recording();
    assert_eq!(recording.damage, []);
    assert_eq!(recording.lost(), 0);
    Some((recording, String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn kind(work: &DeviceWork) -> u8 {
    work.flags & 3
}

fn is(work: &DeviceWork, flag: u8) -> bool {
    work.flags & flag != 0
}

/// Positions of each split that the device worked for, fused ones included, that do work.
fn computed(recording: &Recording) -> BTreeMap<u32, BTreeSet<u32>> {
    let mut computed: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for work in recording.device_works.iter().filter(|work| work.position != NO_NODE) {
        let split = &recording.splits[&work.split];
        let members = recording.fusions.get(&(split.begin.shape, work.position));
        let positions = computed.entry(work.split).or_default();
        positions.insert(work.position);
        positions.extend(members.into_iter().flatten());
    }
    for (split, positions) in &mut computed {
        let working = recording.working_positions(&recording.splits[split]);
        positions.retain(|position| working.contains(position));
    }
    computed
}

fn splits_on_vulkan(recording: &Recording) -> Vec<&Split> {
    let is_vulkan = |split: &&Split| {
        let backend = recording.backends.iter().find(|one| one.backend == split.begin.backend);
        backend.is_some_and(|backend| recording.text(backend.name).starts_with("Vulkan"))
    };
    recording.splits.values().filter(is_vulkan).collect()
}

/// Every node that computes has work of the device, and all work has a node or a name.
#[track_caller]
fn check_attribution(recording: &Recording) {
    let computed = computed(recording);
    let splits = splits_on_vulkan(recording);
    assert!(!splits.is_empty());
    for split in splits {
        let expected = recording.working_positions(split);
        assert_eq!(computed.get(&split.begin.split), Some(&expected));
    }
    for work in &recording.device_works {
        assert!(work.position != NO_NODE || kind(work) != WORK_KERNEL, "{work:?}");
        assert!(work.position != NO_NODE || !recording.text(work.name).is_empty(), "{work:?}");
        assert!(!is(work, WORK_UNTIMED) && work.start <= work.end, "{work:?}");
    }
}

#[test]
fn every_dispatch_of_every_version_finds_its_node() {
    for version in VERSIONS {
        let Some((recording, _)) = record(version, "group", &DENSE) else { return };
        check_attribution(&recording);
        let kernels = Covered::Kernels as u16;
        let how = recording.coverage.iter().find(|one| one.what == kernels).map(|one| one.how);
        assert_eq!(how, Some(CoveredHow::DeviceTimestamps as u8), "{version}");
        let first = recording.device_works.iter().filter(|work| is(work, WORK_FIRST_USE)).count();
        assert!(first > 0 && first < recording.device_works.len() / 2, "{version}: {first}");
        assert!(!recording.host_tasks.is_empty(), "pipelines were compiled");
        assert!(recording.device_clocks.len() >= 2, "{:?}", recording.device_clocks);
    }
}

#[test]
fn experts_find_their_nodes() {
    let arguments = [&DENSE[..7], &["--embd=64", "--prompt=3", "--experts=8"]].concat();
    let Some((recording, _)) = record(NEWEST, "group", &arguments) else { return };
    check_attribution(&recording);
}

/// ggml itself prints which nodes it records, those it fuses included.
#[test]
fn nodes_are_those_that_ggml_logs() {
    for mode in ["group", "pair", "serial"] {
        let Some((recording, log)) = record(NEWEST, mode, &DENSE) else { return };
        let mut logged: Vec<BTreeSet<u32>> = Vec::new();
        let mut last = u32::MAX;
        for line in log.lines() {
            let mut words = line.split(' ');
            let number = words.next().and_then(|word| word.parse().ok());
            let Some(position) = number.filter(|_| words.next().is_some()) else { continue };
            if position <= last {
                logged.push(BTreeSet::new());
            }
            last = position;
            logged.last_mut().expect("one was just begun").insert(position);
        }
        let computed: Vec<BTreeSet<u32>> = computed(&recording).into_values().collect();
        assert_eq!(computed, logged, "{mode}");
    }
}

/// Kernels are named as ggml names its pipelines, in the nodes they compute.
#[test]
fn kernels_have_names() {
    let Some((recording, _)) = record(NEWEST, "group", &DENSE) else { return };
    let mut named = 0;
    for work in recording.device_works.iter().filter(|work| kind(work) == WORK_KERNEL) {
        let op = recording.op_name(&recording.splits[&work.split], work.position);
        let name = recording.text(work.name);
        assert!(!name.is_empty());
        named += u32::from(op == "MUL_MAT" && name.starts_with("mul_mat_vec_q8_0"));
    }
    assert!(named > 0);
    let names = recording.host_tasks.iter().map(|task| recording.text(task.name));
    assert!(
        names.clone().any(|name| name.starts_with("rms_norm")),
        "{:?}",
        names.collect::<Vec<_>>()
    );
}

/// ggml gives its pipelines names on a request that makes it label each dispatch, too. Labels that
/// nobody but us asked for are not made.
#[test]
fn names_come_without_labels() {
    let Some((libraries, environment)) = published_ggml::vulkan_libraries(NEWEST) else { return };
    let counter = built::host_library("counts_labels.c");
    let labels = |request: Option<&str>| {
        let mut workload = UnderAgent::workload(&libraries, &[]);
        workload.command.args(DENSE.iter().flat_map(|word| word.split('=')));
        workload.command.envs(environment.clone()).env("GGPROF_VULKAN", "group");
        let preloaded = [built::agent(), counter.clone()].map(|path| path.display().to_string());
        workload.command.env("LD_PRELOAD", preloaded.join(":"));
        workload.command.envs(request.map(|value| ("GGML_VK_DEBUG_MARKERS", value)));
        let errors = String::from_utf8_lossy(&workload.run_well().stderr).into_owned();
        let recording = workload.recording();
        let mut kernels = recording.device_works.iter().filter(|one| kind(one) == WORK_KERNEL);
        assert!(kernels.all(|work| !recording.text(work.name).is_empty()));
        let mut counts = errors.lines().filter_map(|line| line.strip_prefix("labels: "));
        counts.next().and_then(|count| count.parse::<u32>().ok()).expect("the counter is loaded")
    };
    assert_eq!(labels(None), 0);
    assert!(labels(Some("1")) > 100, "the user wants them");
}

/// Time is counted once: groups of a queue follow each other, and what shares one is said to.
#[test]
fn groups_do_not_overlap() {
    let Some((recording, _)) = record(NEWEST, "group", &DENSE) else { return };
    let mut works: Vec<&DeviceWork> = recording.device_works.iter().collect();
    works.sort_by_key(|work| (work.stream, work.start, work.end));
    for pair in works.windows(2).filter(|pair| pair[0].stream == pair[1].stream) {
        let same = (pair[0].start, pair[0].end) == (pair[1].start, pair[1].end);
        assert!(same || pair[0].end <= pair[1].start, "{pair:?}");
        if pair[0].group == pair[1].group {
            assert!(is(pair[0], WORK_CONCURRENT) && is(pair[1], WORK_CONCURRENT), "{pair:?}");
        } else {
            assert!(!same && pair[0].group < pair[1].group, "{pair:?}");
        }
    }
    assert!(works.iter().any(|work| is(work, WORK_CONCURRENT)), "three products of a layer");
}

#[test]
fn serial_keeps_every_command_apart() {
    let Some((recording, _)) = record(NEWEST, "serial", &DENSE) else { return };
    check_attribution(&recording);
    let mut groups = BTreeSet::new();
    for work in &recording.device_works {
        assert!(is(work, WORK_SERIALIZED) && !is(work, WORK_CONCURRENT), "{work:?}");
        assert!(groups.insert((work.stream, work.group)), "{work:?}");
    }
}

/// What the device moves has its time and its bytes, and the copy of ggml's that it was for.
/// Inputs of splits the host writes into this device's memory by itself.
#[test]
fn copies_have_their_work_on_the_device() {
    let arguments = [&DENSE[..], &["--upload"]].concat();
    let Some((recording, _)) = record(NEWEST, "group", &arguments) else { return };
    let direction = |flags: u8| flags & 3;
    for (kind_of_copy, least) in [(COPY_HOST_TO_DEVICE, 18), (COPY_DEVICE_TO_HOST, 4)] {
        let vulkan = splits_on_vulkan(&recording)[0].begin.backend;
        let uploads = kind_of_copy == COPY_HOST_TO_DEVICE;
        let copies = recording.copies.iter().filter(|copy| direction(copy.flags) == kind_of_copy);
        let by_device = copies.filter(|copy| !uploads || copy.run == 0);
        let mut found = 0;
        for copy in by_device {
            let side = if uploads { copy.target_backend } else { copy.source_backend };
            assert_eq!(side, vulkan, "{copy:?}");
            let works = recording.device_works.iter().filter(|work| work.cause == copy.start);
            let works: Vec<&DeviceWork> = works.collect();
            assert_eq!(works.iter().map(|work| work.bytes).sum::<u64>(), copy.bytes, "{copy:?}");
            for work in works {
                assert_eq!(kind(work), WORK_COPY, "{work:?}");
                // Before the first graph nobody has told whose device it is: the copy has.
                assert!([NONE, vulkan].contains(&work.backend), "{work:?}");
                assert_eq!(work.flags >> WORK_DIRECTION_BIT, kind_of_copy, "{work:?}");
                assert!(!is(work, WORK_UNTIMED) && work.start < work.end, "{work:?}");
                found += 1;
            }
        }
        assert!(found >= least, "{found} copies of kind {kind_of_copy}");
    }
    let of_none = recording.device_works.iter().filter(|work| {
        work.cause != 0 && recording.copies.iter().all(|copy| copy.start != work.cause)
    });
    assert_eq!(of_none.count(), 0);
}

/// The first two graphs of a shape, and what the budget allows beyond.
#[test]
fn sampling_times_the_parts_of_some_graphs() {
    // The first graph is a prompt; all others have one shape.
    let arguments = [&DENSE[..3], &["--graphs=12", "--layers=2", "--embd=64", "--prompt=3"]];
    let sample = |version, budget| {
        let wishes = [("GGPROF_VULKAN", "sample"), ("GGPROF_BUDGET", budget)];
        record_with(version, &wishes, &arguments.concat())
    };
    let Some((all, _)) = sample(NEWEST, "100") else { return };
    assert!(all.device_works.iter().all(|work| kind(work) != WORK_WHOLE_SPLIT));
    for version in VERSIONS {
        let Some((recording, _)) = sample(version, "0") else { return };
        let run_of = |work: &DeviceWork| recording.splits[&work.split].begin.run;
        let in_splits = recording.device_works.iter().filter(|work| work.split != 0);
        let (whole, parts): (Vec<_>, Vec<_>) =
            in_splits.partition(|work| kind(work) == WORK_WHOLE_SPLIT);
        let runs: BTreeSet<u32> = parts.into_iter().map(run_of).collect();
        assert_eq!(runs, BTreeSet::from([1, 2, 3]), "{version}");
        let mut marks: BTreeMap<u32, Vec<&DeviceWork>> = BTreeMap::new();
        whole.into_iter().for_each(|work| marks.entry(run_of(work)).or_default().push(work));
        assert_eq!(marks.keys().copied().collect::<Vec<_>>(), Vec::from_iter(4..=12), "{version}");
        for marks in marks.values() {
            assert_eq!(marks.len(), 2, "{version}: beginning and end: {marks:?}");
            assert!(marks[0].end < marks[1].start, "{version}: {marks:?}");
        }
    }
}

#[test]
fn nothing_is_done_when_it_is_off() {
    let Some((recording, _)) = record(NEWEST, "off", &DENSE) else { return };
    assert_eq!(recording.device_works, []);
    assert_eq!(recording.host_tasks, []);
    assert!(!splits_on_vulkan(&recording).is_empty());
    let kernels = Covered::Kernels as u16;
    let how = recording.coverage.iter().find(|one| one.what == kernels).map(|one| one.how);
    assert_eq!(how, Some(CoveredHow::Not as u8));
}

/// A real application: half of a model's layers on the device, the same tokens as without us.
#[test]
fn an_application_generates_the_same() {
    let Some((_, environment)) = published_ggml::vulkan_libraries(NEWEST) else { return };
    for (name, model) in [("tiny", Model::TINY), ("tiny-experts", Model::TINY_EXPERTS)] {
        let model = model.file(name).expect("the model can be written");
        let generation = Generation {
            version: NEWEST,
            model: &model,
            tokens: 6,
            threads: 1,
            vulkan_layers: Some(2),
        };
        let mut plain = match generation.command() {
            Ok(command) => command,
            Err(problem) => return eprintln!("not tested: {problem}"),
        };
        let expected = plain.envs(environment.clone()).output().expect("node runs");
        assert!(expected.status.success(), "{expected:?}");
        let mut recorded = Command::new(built::ggprof());
        recorded.args(["run", "--summary-to", "stderr", "--", "node"]).args(plain.get_args());
        let output = recorded.envs(environment.clone()).output().expect("ggprof runs");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, expected.stdout);
        let summary = String::from_utf8_lossy(&output.stderr);
        for part in ["Vulkan0", "CPU", "copy_", "kernels of devices"] {
            assert!(summary.contains(part), "{part} is missing in\n{summary}");
        }
    }
}

/// The loader orders layers by where it finds them. The shell is under the agent too, and
/// becomes the workload: its manifest stays.
const OURS_FIRST: &str = r#"export VK_LAYER_PATH="$0/vulkan-layer-$$-0:$1"; shift; exec "$@""#;

/// The Khronos layer finds nothing in our commands that it does not find in ggml's. To see
/// ours it must be behind us.
#[test]
fn the_validation_layer_is_silent() {
    let place = std::path::Path::new("/usr/share/vulkan/explicit_layer.d");
    if !place.join("VkLayer_khronos_validation.json").exists() {
        assert!(std::env::var_os("GGPROF_REQUIRE_GGML").is_none(), "no validation layer");
        return eprintln!("not tested: no validation layer (Debian: vulkan-validationlayers)");
    }
    let Some((libraries, environment)) = published_ggml::vulkan_libraries(NEWEST) else { return };
    let complaints = |command: &mut Command| {
        command.args(DENSE.iter().flat_map(|word| word.split('='))).envs(environment.clone());
        command.env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation");
        let output = command.output().expect("the workload runs");
        assert!(output.status.success(), "{output:?}");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines =
            text.lines().filter(|line| line.contains("VUID") || line.contains("UNASSIGNED"));
        lines.filter_map(|line| line.split('(').next().map(str::to_owned)).collect::<BTreeSet<_>>()
    };
    let own = complaints(Command::new(built::workload()).arg(&libraries));
    for mode in ["group", "pair", "serial"] {
        let mut workload = UnderAgent::workload(&libraries, &[]);
        workload.command.env("GGPROF_VULKAN", mode);
        let mut command = Command::new("sh");
        command.args(["-c", OURS_FIRST]).arg(workload.directory()).arg(place);
        command.arg(workload.command.get_program()).args(workload.command.get_args());
        for (name, value) in workload.command.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        assert_eq!(complaints(&mut command), own, "{mode}");
        assert!(!workload.recording().device_works.is_empty());
    }
}
