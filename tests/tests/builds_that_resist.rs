//! ggml built so that its calls do not use slots, or linked into the program: ops are seen at the
//! functions' entries.

use ggprof_e2e::recording::Recording;
use ggprof_e2e::source_ggml::{self, Compiler, Kept, SYMBOLIC};
use ggprof_e2e::under_agent::UnderAgent;
use ggprof_e2e::{built, published_ggml};
use ggprof_spool::layout::{Covered, CoveredHow};
use std::collections::BTreeSet;
use std::process::{Command, Output};

fn check_every_node_recorded(recording: &Recording) {
    assert_eq!((recording.lost(), recording.damage.len()), (0, 0), "{:?}", recording.header.losses);
    for split in recording.splits.values() {
        assert_eq!(recording.recorded_positions(split), recording.working_positions(split));
    }
}

fn how(recording: &Recording, what: Covered) -> Vec<u8> {
    let all = recording.coverage.iter().filter(|covered| covered.what == what as u16);
    all.map(|covered| covered.how).collect()
}

const SEEN: [Covered; 5] =
    [Covered::Ops, Covered::BarrierWaits, Covered::Fusions, Covered::Copies, Covered::Memory];

fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn a_library_that_calls_itself_directly_is_hooked_at_entries() {
    let Some(libraries) = source_ggml::libraries(Compiler::Gcc, SYMBOLIC) else { return };
    for threads in ["1", "2"] {
        let mut workload =
            UnderAgent::workload(&libraries, &["--graphs", "5", "--threads", threads]);
        workload.run_well();
        let recording = workload.recording();
        check_every_node_recorded(&recording);
        for what in SEEN {
            assert_eq!(how(&recording, what), [CoveredHow::InlineHook as u8], "{what:?}");
        }
        assert_eq!(recording.completed_runs().count(), 5);
        let threads_seen = recording.splits.values().filter_map(|split| split.end.as_ref());
        assert!(threads_seen.into_iter().all(|end| end.threads.to_string() == threads));
    }
}

#[test]
fn a_program_with_ggml_linked_into_it_is_recorded() {
    let Some(program) = source_ggml::linked_into("ggml_linked_in.c") else { return };
    let plain = Command::new(&program).args(["4", "1"]).output().expect("the program starts");
    for threads in ["1", "2"] {
        let mut recorded = UnderAgent::new(&program);
        recorded.command.args(["4", threads]);
        let output = recorded.run_well();
        assert_eq!(last_line(&output), last_line(&plain), "the same results");
        let recording = recorded.recording();
        check_every_node_recorded(&recording);
        assert_eq!(recording.completed_runs().count(), 4);
        let computed = recording.runs.keys().map(|&run| recording.computed_in(run));
        assert_eq!(computed.collect::<Vec<_>>(), [18; 4]);
        assert_eq!(how(&recording, Covered::Ops), [CoveredHow::InlineHook as u8]);
        assert_eq!(how(&recording, Covered::Copies), [CoveredHow::InlineHook as u8]);
        assert_eq!(how(&recording, Covered::Memory), [CoveredHow::InlineHook as u8]);
    }
}

#[test]
fn two_copies_of_ggml_in_one_process_are_both_recorded() {
    let Some(program) = source_ggml::linked_into("ggml_linked_in.c") else { return };
    // Backends of this one have other tables: it is two years older.
    let Some(libraries) = published_ggml::libraries("3.3.2") else { return };
    let mut recorded = UnderAgent::new(&program);
    recorded.command.args(["3", "1"]).arg(libraries);
    recorded.run_well();
    let recording = recorded.recording();
    check_every_node_recorded(&recording);
    let computed = recording.runs.keys().map(|&run| recording.computed_in(run));
    assert_eq!(computed.collect::<Vec<_>>(), [18, 18, 18, 10, 10]);
    let instances: BTreeSet<u32> = recording.backends.iter().map(|b| b.instance).collect();
    assert_eq!(instances.len(), 2, "{:?}", recording.backends);
    let ways = [CoveredHow::InlineHook as u8, CoveredHow::GotSlot as u8];
    assert_eq!(how(&recording, Covered::Ops), ways);
}

#[test]
fn ggml_in_a_library_that_is_opened_later_is_recorded() {
    for (kept, threads) in [(Kept::Hidden, "1"), (Kept::Hidden, "2"), (Kept::Symbolic, "1")] {
        let library = source_ggml::library_around("ggml_linked_in.c", kept);
        let Some(library) = library else { return };
        let mut program = Command::new(built::host_program("opens_hidden_ggml.c"));
        program.arg(&library).args(["3", threads]);
        // ggml's own handler for exceptions does not bear that it is opened again.
        program.env("GGML_NO_BACKTRACE", "1");
        check_hidden(program, 6);
    }
}

/// Whoever asks for a function may use it at once, while another thread that is about to hook it
/// waits for the loader.
#[test]
fn hidden_ggml_is_hooked_before_it_is_used_or_never() {
    let library = source_ggml::library_around("ggml_linked_in.c", Kept::Hidden);
    let Some(library) = library else { return };
    let flags = ["-Wall", "-Werror", "-rdynamic", "-ldl", "-lpthread"];
    let program = built::linked_program("opens_hidden_ggml_beside.c", "program", &flags);
    let slow = built::host_library("calls_back_when_opened.c");
    let with_constructor_of = |milliseconds: &str| {
        let mut command = Command::new(&program);
        command.arg(&slow).arg(milliseconds).arg(&library).args(["3", "1"]);
        command
    };
    check_hidden(with_constructor_of("20"), 3);

    let command = with_constructor_of("500");
    let mut late = UnderAgent::new(&program);
    late.command.args(command.get_args());
    let errors = String::from_utf8_lossy(&late.run_well().stderr).into_owned();
    let told = "cannot be recorded: it may have been in use before ggprof could look at it";
    assert!(errors.contains(told), "{errors}");
    assert!(late.files().is_empty(), "nothing was hooked");
}

/// Debian's Python is not position-independent, so it lies at address 0, as the loader counts.
#[test]
fn ggml_hidden_in_a_library_that_python_opens_is_recorded() {
    let library = source_ggml::library_around("ggml_linked_in.c", Kept::Hidden);
    let Some(library) = library else { return };
    let mut program = Command::new("/usr/bin/python3");
    program.arg(built::application("opens_hidden_ggml.py")).arg(&library).args(["3", "2"]);
    check_hidden(program, 3);
}

#[test]
fn ggml_hidden_in_a_library_that_the_program_links_is_recorded() {
    let library = source_ggml::library_around("ggml_linked_in.c", Kept::Hidden);
    let Some(library) = library else { return };
    let library = library.display().to_string();
    let program = built::linked_program("links_hidden_ggml.c", "hidden", &[&library]);
    let mut program = Command::new(program);
    program.args(["3", "1"]);
    check_hidden(program, 3);
}

/// Runs the program with and without the agent.
fn check_hidden(mut program: Command, graphs: usize) {
    let plain = program.output().expect("the program starts");
    assert!(plain.status.success(), "{plain:?}");
    let mut recorded = UnderAgent::of(program);
    let output = recorded.run_well();
    assert_eq!(last_line(&output), last_line(&plain), "the same results");
    let recording = recorded.recording();
    check_every_node_recorded(&recording);
    let computed = recording.runs.keys().map(|&run| recording.computed_in(run));
    assert_eq!(computed.collect::<Vec<_>>(), vec![18; graphs]);
    for what in SEEN {
        assert!(how(&recording, what).iter().all(|how| *how == CoveredHow::InlineHook as u8));
    }
    assert!(how(&recording, Covered::Kernels).is_empty(), "the processor has none");
}

#[test]
fn a_library_hooked_at_entries_may_be_closed_while_another_computes() {
    let Some(libraries) = source_ggml::libraries(Compiler::Gcc, SYMBOLIC) else { return };
    let again = "libggml-cpu-again.so";
    std::fs::copy(libraries.join("libggml-cpu.so"), libraries.join(again)).unwrap();
    let mut program = UnderAgent::new(built::host_program("closes_a_backend.c"));
    program.command.arg(libraries).args(["libggml-cpu.so", again]);
    program.run_well();
    let recording = program.recording();
    check_every_node_recorded(&recording);
    assert!(recording.runs.keys().all(|&run| recording.computed_in(run) == 10));
    assert_eq!(how(&recording, Covered::Ops), [CoveredHow::InlineHook as u8; 21]);
}

#[test]
fn a_library_hooked_at_entries_may_be_closed_and_opened_again() {
    let Some(libraries) = source_ggml::libraries(Compiler::Gcc, SYMBOLIC) else { return };
    let mut program = UnderAgent::new(built::host_program("reopens_ggml.c"));
    program.command.arg(libraries).args(["libggml-base.so", "libggml-cpu.so"]);
    program.run_well();
    let recording = program.recording();
    check_every_node_recorded(&recording);
    assert_eq!(recording.completed_runs().count(), 6);
    assert!(recording.runs.keys().all(|&run| recording.computed_in(run) == 10));
}
