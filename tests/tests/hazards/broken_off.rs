//! Graphs that are left or stopped before their end.

use super::*;

const UNWOUND: i32 = i32::MIN;

#[test]
fn a_cpp_exception_passes_through() {
    let Some(mut program) = host("throws_through_hook.cpp") else { return };
    program.run_well();
    let recording = program.recording();
    assert_eq!(completed(&recording), 2);
    let unwound = recording.completed_runs().filter(|(_, end)| end.status == UNWOUND);
    assert_eq!(unwound.count(), 3);
}

/// What was begun is ended when the program uses ggml again, from as far down or elsewhere.
#[test]
fn a_program_may_leave_a_graph_by_a_jump() {
    for libraries in [published_ggml::libraries(NEWEST), published_ggml::stripped(NEWEST)] {
        let Some(libraries) = libraries else { return };
        for how in ["0", "-10", "10"] {
            let mut program = UnderAgent::new(built::host_program("jumps_out_of_a_graph.c"));
            program.command.arg(&libraries).arg(how);
            let output = program.run_well();
            assert_eq!(output.stdout, b"left=3\n", "{how}");
            let recording = program.recording();
            let unwound = recording.completed_runs().filter(|(_, end)| end.status == UNWOUND);
            assert_eq!((completed(&recording), unwound.count()), (11, 3), "{how}");
            let is_open = |split: &&ggprof_e2e::recording::Split| split.end.is_none();
            assert_eq!(recording.splits.values().filter(is_open).count(), 0, "{how}");
            for (run, end) in recording.completed_runs().filter(|(_, end)| end.status == 0) {
                assert_eq!((end.splits, recording.computed_in(run.begin.run)), (1, 10), "{how}");
            }
        }
    }
}

#[test]
fn a_cancelled_thread_ends_where_it_would() {
    let other = built::host_library("nothing.c");
    for (what, graphs) in [("opens", [3]), ("uses", [5])] {
        let Some(mut program) = host("is_cancelled.c") else { return };
        program.command.arg(what).arg(&other);
        let alone = std::process::Command::new(program.command.get_program())
            .args(program.command.get_args())
            .output();
        let alone = alone.expect("the program starts");
        assert_eq!(String::from_utf8_lossy(&alone.stdout), "came=2 cleaned=1 cancelled=1\n");
        let output = program.run_well();
        assert_eq!(output.stdout, alone.stdout, "{what}: {output:?}");
        assert_eq!([completed(&program.recording())], graphs, "{what}");
    }
}

#[test]
fn the_programs_own_abort_callback_counts() {
    for version in [BEFORE_ANNOUNCED_OPS, NEWEST] {
        let Some(libraries) = published_ggml::stripped(version) else { continue };
        let source = built::host_program("stops_a_graph.c");
        let alone = std::process::Command::new(&source).arg(&libraries).output();
        let alone = alone.expect("the program starts");
        let mut program = UnderAgent::new(source);
        program.command.arg(libraries);
        let output = program.run_well();
        assert_eq!(output.stdout, alone.stdout, "{version}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("status=1"));
        let recording = program.recording();
        let statuses: Vec<i32> = recording.completed_runs().map(|(_, end)| end.status).collect();
        assert_eq!(statuses, [0, 1, 0], "{version}");
        // Where only ticks are seen, nobody can tell which ops of that graph they were.
        let by_ticks = recording.coverage.iter().any(|covered| {
            covered.what == Covered::Ops as u16 && covered.how == CoveredHow::AbortCallback as u8
        });
        let lost = |kind: LossCounter| recording.header.losses[kind as usize];
        assert_eq!(lost(LossCounter::UnclearTicks) > 0, by_ticks, "{version}");
        assert_eq!(lost(LossCounter::OpOutsideRun), 0, "{version}");
    }
}

#[test]
fn a_graph_that_was_broken_off_before_a_fusion_is_recorded_the_next_time() {
    let Some(mut program) = host("stops_before_a_fusion.c") else { return };
    program.run_well();
    let recording = program.recording();
    assert_eq!((recording.lost(), completed(&recording)), (0, 3));
    let computed: Vec<usize> =
        recording.runs.keys().map(|&run| recording.computed_in(run)).collect();
    assert_eq!(computed[1..], [7; 3], "{computed:?}");
}

/// Recorded throughout, in some graphs only, and not at all any more.
#[test]
fn abort_callbacks_are_those_of_their_backends() {
    let flags = ["-Wall", "-Werror", "-rdynamic", "-ldl"];
    let source = built::linked_program("changes_abort_callbacks.c", "program", &flags);
    let windows =
        [("GGPROF_FIRST_GRAPH", "0"), ("GGPROF_FIRST_GRAPH", "4"), ("GGPROF_LAST_GRAPH", "3")];
    let Some(libraries) = published_ggml::stripped(BEFORE_ANNOUNCED_OPS) else { return };
    let alone = std::process::Command::new(&source).arg(&libraries).output();
    let alone = String::from_utf8(alone.expect("the program starts").stdout).expect("it is text");
    assert!(alone.contains("another backend at its place: status=0 stops=0"), "{alone}");
    for window in windows {
        let mut program = UnderAgent::new(&source);
        program.command.arg(&libraries).envs([window]);
        let output = program.run_well();
        assert_eq!(String::from_utf8_lossy(&output.stdout), alone, "{window:?}");
        let recording = program.recording();
        assert!(completed(&recording) > 0);
        let ops = recording.coverage.iter().find(|covered| covered.what == Covered::Ops as u16);
        assert!(ops.is_some_and(|covered| covered.how == CoveredHow::AbortCallback as u8));
    }
}
