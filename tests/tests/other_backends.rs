//! Backends that are neither the CPU's nor a GPU's: BLAS on the host, RPC to a server.

use ggprof_e2e::debian_sid;
use ggprof_e2e::model::Model;
use ggprof_e2e::recording::{Recording, Split};
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_spool::layout::{Covered, CoveredHow, MEASURED_HOST};

fn backend_number(recording: &Recording, name: &str) -> u32 {
    let named = |backend: &&_| {
        let backend: &ggprof_spool::layout::Backend = backend;
        recording.text(backend.name).starts_with(name)
    };
    recording.backends.iter().find(named).map_or(0, |backend| backend.backend)
}

fn splits_on<'r>(recording: &'r Recording, backend: &str) -> Vec<&'r Split> {
    let number = backend_number(recording, backend);
    recording.splits.values().filter(|split| split.begin.backend == number).collect()
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
    let library = recording.text(covered.reason);
    assert!(library.starts_with("openblas") && library.contains("blas.so"), "{library:?}");
}
