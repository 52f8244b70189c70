//! CPU and Vulkan in one program, on Mesa's software device: splits in order with
//! their backend, copies with their sizes and directions, and ops one by one when
//! asked for.

use std::collections::BTreeSet;

use ggprof_e2e::published_ggml::{self, NEWEST};
use ggprof_e2e::recording::Recording;
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_spool::layout::{self, COPY_ASYNC, COPY_PARTIAL, MEASURED_SERIALIZED};

fn record(arguments: &[&str], serialize: bool) -> Option<Recording> {
    let (libraries, environment) = published_ggml::vulkan_libraries(NEWEST)?;
    let mut workload = UnderAgent::workload(&libraries, &["--threads", "1", "--split"]);
    workload.command.args(arguments).envs(environment);
    if serialize {
        workload.command.env("GGPROF_SERIALIZE", "1");
    }
    workload.run_well();
    let recording = workload.recording();
    assert_eq!(recording.damage, []);
    assert_eq!(recording.lost(), 0);
    Some(recording)
}

fn backend_name(recording: &Recording, id: u32) -> &str {
    let backend = recording.backends.iter().find(|backend| backend.backend == id);
    backend.map_or("", |backend| recording.text(backend.name))
}

#[test]
fn splits_and_copies_name_their_backends() {
    let arguments = ["--graphs", "2", "--layers", "2", "--embd", "64", "--prompt", "3"];
    let Some(recording) = record(&arguments, false) else { return };
    for (run, _) in recording.completed_runs() {
        let splits: Vec<_> = recording.splits_of(run.begin.run).collect();
        let order: Vec<u16> = splits.iter().map(|split| split.begin.index).collect();
        assert_eq!(order, (0..splits.len() as u16).collect::<Vec<_>>());
        let names: Vec<&str> =
            splits.iter().map(|split| backend_name(&recording, split.begin.backend)).collect();
        assert_eq!(names, ["CPU", "Vulkan0"]);
    }
    let layer = recording.copies.iter().find(|copy| {
        recording.text(copy.target).starts_with("Vulkan0#") && copy.bytes == 64 * 3 * 4
    });
    let layer = layer.expect("the first layer's result goes to the second device");
    assert_eq!(layer.flags & 3, layout::COPY_HOST_TO_DEVICE);
    assert_eq!(backend_name(&recording, layer.source_backend), "CPU");
    assert_eq!(backend_name(&recording, layer.target_backend), "Vulkan0");
    assert!(recording.runs.contains_key(&layer.run));
}

#[test]
fn runs_of_experts_are_single_copies_of_their_size() {
    // One layer on the CPU with 64 tokens: ggml offloads it and copies the
    // experts used, 0 and 1, then 4 and 5.
    let arguments =
        ["--graphs", "1", "--layers", "1", "--embd", "64", "--prompt", "64", "--experts", "8"];
    let Some(recording) = record(&arguments, false) else { return };
    let expert = 64 * 128 * 34 / 32;
    let padding = 512;
    let partial: Vec<_> =
        recording.copies.iter().filter(|copy| copy.flags & COPY_PARTIAL != 0).collect();
    assert_eq!(partial.len(), 6, "two runs of each of three tensors");
    for (number, copy) in partial.iter().enumerate() {
        assert_ne!(copy.flags & COPY_ASYNC, 0);
        assert_eq!(copy.bytes, 2 * expert + padding);
        assert_eq!(copy.offset, if number % 2 == 0 { 0 } else { 4 * expert });
        assert!(recording.text(copy.target).contains("_exps.weight"));
    }
}

#[test]
fn serialising_times_every_node_of_the_other_device() {
    let arguments = ["--graphs", "2", "--layers", "2", "--embd", "64", "--prompt", "3"];
    let Some(recording) = record(&arguments, true) else { return };
    assert!(recording.header.serialized);
    for split in recording.splits.values() {
        let serialized = split.ops.iter().filter(|op| op.measured == MEASURED_SERIALIZED);
        if backend_name(&recording, split.begin.backend) == "Vulkan0" {
            let positions: BTreeSet<u32> = serialized.map(|op| op.position).collect();
            assert_eq!(positions, recording.working_positions(split));
        } else {
            assert_eq!(serialized.count(), 0);
        }
    }
}
