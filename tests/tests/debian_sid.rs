//! The newest llama.cpp as a distribution packages it: gcc, full RELRO, stripped, backends as
//! libraries.

use ggprof_e2e::debian_sid;
use ggprof_e2e::model::Model;
use ggprof_e2e::under_agent::UnderAgent;

#[test]
fn llama_bench_is_recorded() {
    let Some(bench) = debian_sid::command("llama-bench", &["cpu"]) else { return };
    let model = Model::TINY.file("tiny").expect("a model can be written");
    let mut program = UnderAgent::of(bench);
    program.command.args(["--threads", "1", "--n-prompt", "16", "--n-gen", "4"]);
    program.command.args(["--repetitions", "1", "--model"]).arg(model);
    program.run_well();
    let recording = program.recording();
    for split in recording.splits.values() {
        assert_eq!(recording.recorded_positions(split), recording.working_positions(split));
    }
    assert!(recording.runs.len() >= 5, "{} graph runs", recording.runs.len());
    assert_eq!(recording.lost(), 0);
}
