//! `ggprof attach` in an emulated system. The emulator of programs has no way to stop them.

use ggprof_e2e::arm64;
use ggprof_e2e::arm64_system::{Ended, Pages, System};
use ggprof_e2e::model::Model;
use ggprof_e2e::published_ggml::{BEFORE_ANNOUNCED_OPS, NEWEST};
use ggprof_e2e::recording::Recording;
use ggprof_spool::layout::CoveredHow;

use crate::seen;

const COMPUTES: &str = "--until-told --result --layers 1 --threads 2";
const GENERATES: &str = "llama-completion --threads 1 -n 400 --temp 0 --no-warmup -no-cnv --no-perf \
                         --ignore-eos -p a --model /tiny.gguf";

/// Starts a program that ends when it is told to, and attaches to it; its exit code is that of the line.
fn attached(program: &str) -> String {
    format!(
        "export GGPROF_AGENT=/agent.so; mkfifo in; exec 9<>in; {program} <in & program=$!; \
         for once in 1 2 3 4 5 6 7 8; do sleep 1; \
         /ggprof attach $program --no-sensors --duration 1s -o p.ggprof; code=$?; \
         [ $code = 1 ] || break; done; echo attached $code >&2; \
         echo >&9; wait $program"
    )
}

/// To compile the command takes minutes.
#[test]
fn programs_are_attached_to_and_do_the_same() {
    if std::env::var_os("GGPROF_ARM64_UNIT_TESTS").is_none() {
        return;
    }
    let [Some(newest), Some(older)] = [NEWEST, BEFORE_ANNOUNCED_OPS].map(arm64::published) else {
        return;
    };
    for pages in Pages::ALL {
        let Some(mut system) = System::new(pages) else { return };
        system.place(Model::TINY.file("tiny").expect("a model can be written"), "tiny.gguf");
        system.place(arm64::ggprof(), "ggprof");
        system.place(arm64::workload(), "workload");
        system.place(arm64::host_program("keeps_registers_arm64.c"), "keeps_registers");
        system.place(&newest, "newest");
        system.place(&older, "older");
        system.run("registers", &attached("/keeps_registers /newest"));
        for (name, program) in programs() {
            system.run(&format!("{name}-alone"), &format!("{program} </dev/null"));
            system.run(name, &attached(&program));
        }
        let ended = system.boot();

        let registers = ended.ran("registers");
        assert_eq!(registers.code, Some(0), "a register has changed: {registers:?}");
        // It computes no graph, so there is nothing to report.
        assert!(registers.err.contains("attached 3"), "{registers:?}");
        let slots = check_same(&ended, "slots");
        assert_eq!(seen(&slots)[0], CoveredHow::GotSlot);
        let entries = check_same(&ended, "entries");
        assert_eq!(seen(&entries)[0], CoveredHow::InlineHook);
        check_same(&ended, "completion");
    }
}

fn programs() -> [(&'static str, String); 3] {
    [
        ("slots", format!("/workload /newest {COMPUTES}")),
        ("entries", format!("/workload /older {COMPUTES}")),
        ("completion", GENERATES.to_owned()),
    ]
}

/// The recording of a program that did what it does alone.
fn check_same(ended: &Ended, name: &str) -> Recording {
    let (alone, attached) = (ended.ran(&format!("{name}-alone")), ended.ran(name));
    assert_eq!((attached.code, alone.code), (Some(0), Some(0)), "{attached:?}\n{alone:?}");
    // How much was computed, and how long it took, differ.
    let said = |out: &str| out.lines().filter(|it| !it.contains("_ns=")).collect::<String>();
    assert_eq!(said(&attached.out), said(&alone.out));
    assert!(attached.err.contains("One thread stood for"), "{attached:?}");
    let recording = ended.recordings(name).pop().expect("it is recorded");
    assert!(recording.completed_runs().count() > 0, "{attached:?}");
    for split in recording.splits.values().filter(|split| split.end.is_some()) {
        assert_eq!(recording.recorded_positions(split), recording.working_positions(split));
    }
    assert_eq!((recording.lost(), recording.damage.len()), (0, 0));
    recording
}
