//! Programs that fork, start others, or become others.

use super::*;

/// The graph runs of each recording, the fewest first, and how many children are missing in all.
fn runs_and_lost_children(program: &UnderAgent) -> (Vec<usize>, u64) {
    let recordings = program.recordings();
    let lost =
        recordings.iter().map(|it| it.header.losses[LossCounter::ForkedChild as usize]).sum();
    assert_eq!(recordings.iter().map(Recording::lost).sum::<u64>(), lost);
    let mut counts: Vec<usize> = recordings.iter().map(completed).collect();
    counts.sort_unstable();
    (counts, lost)
}

#[test]
fn a_forked_child_makes_its_own_recording() {
    let Some(mut program) = host("forks_while_recording.c") else { return };
    program.run_well();
    assert_eq!(runs_and_lost_children(&program), (vec![5, 5], 0));
    assert!(program.recordings().iter().any(|recording| recording.header.end_ticks != 0));
}

/// Where a child cannot be recorded, its parent's recording says so and is whole.
#[test]
fn a_forked_child_that_cannot_be_followed_is_counted() {
    for (source, runs) in [("forks_by_system_call.c", 5), ("forks_inside_a_graph.c", 5)] {
        let Some(mut program) = host(source) else { return };
        program.run_well();
        assert_eq!(runs_and_lost_children(&program), (vec![runs], 1), "{source}");
        let recording = program.recording();
        assert_ne!(recording.header.end_ticks, 0, "{source}");
        for (run, end) in recording.completed_runs() {
            assert_eq!(end.splits, 1, "{source}");
            let expected = recording.splits_of(run.begin.run).map(|it| it.begin.nodes as usize);
            assert_eq!(recording.computed_in(run.begin.run), expected.sum::<usize>(), "{source}");
        }
    }
}

#[test]
fn workers_that_a_server_forks_are_all_recorded() {
    for how in ["inherited", "own", "grandchildren", "busy"] {
        let Some(mut program) = host("forks_workers.c") else { return };
        program.command.arg(how);
        program.run_well();
        let (counts, lost) = runs_and_lost_children(&program);
        assert_eq!((counts.len(), &counts[..4], lost), (5, &[3; 4][..], 0), "{how}");
        assert!(counts[4] == 4 || how == "busy" && counts[4] > 4, "{how}: {counts:?}");
        for recording in program.recordings() {
            assert!(recording.runs.keys().all(|&run| recording.computed_in(run) == 10), "{how}");
            assert!(!recording.backends.is_empty() && !recording.coverage.is_empty(), "{how}");
        }
    }
}

/// ld.so ends a process that asks it something then.
#[test]
fn a_child_forked_while_the_loader_is_at_work_is_left_alone() {
    let Some(mut program) = host("forks_while_opening.c") else { return };
    program.command.arg(built::host_library("nothing.c"));
    let output = program.run_well();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "child exit 17\n");
    let recording = program.recording();
    assert_eq!(completed(&recording), 5);
    assert_eq!(recording.header.losses[LossCounter::ForkedChild as usize], 1);
}

/// Nobody lets go of the agent's locks in the child that another thread held when it was forked.
#[test]
fn a_child_forked_while_another_thread_begins_to_record_does_not_wait_for_it() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let flags = ["-Wall", "-Werror", "-rdynamic", "-ldl", "-lpthread"];
    let program = built::linked_program("forks_while_another_begins.c", "program", &flags);
    let mut program = UnderAgent::new(program);
    program.command.arg(libraries);
    let output = program.run_well();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "child exit 17\n");
    let not = "ggprof: nothing is recorded of a process that was forked while another thread began";
    assert!(said(&output).starts_with(not), "{output:?}");
    assert_eq!(completed(&program.recording()), 3);
}

/// Whether a child can be recorded takes another process to find out, which one that does not use
/// ggml does not need.
#[test]
fn a_forked_child_that_does_not_use_ggml_makes_no_process() {
    let Some(mut program) = host("children_make_no_processes.c") else { return };
    let output = program.run_well();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "child exit 17\nchild exit 17\n");
    assert_eq!(runs_and_lost_children(&program), (vec![3], 0));
}

#[test]
fn a_child_forked_before_ggml_makes_its_own_recording() {
    let Some(mut program) = host("forks_before_ggml.c") else { return };
    program.run_well();
    let mut counts: Vec<usize> = program.recordings().iter().map(completed).collect();
    counts.sort_unstable();
    assert_eq!(counts, [2, 4]);
}

#[test]
fn a_program_that_becomes_another_leaves_two_recordings() {
    let Some(mut program) = host("execs.c") else { return };
    program.run_well();
    let mut counts: Vec<usize> = program.recordings().iter().map(completed).collect();
    counts.sort_unstable();
    assert_eq!(counts, [2, 5]);
}

#[test]
fn children_are_followed_into_their_own_recordings() {
    let Some(libraries) = published_ggml::libraries(NEWEST) else { return };
    let mut shell = UnderAgent::new("sh");
    let one = format!("'{}' '{}' --graphs", built::workload().display(), libraries.display());
    shell.command.args(["-c", &format!("{one} 1; {one} 2; ls / >/dev/null")]);
    shell.run_well();
    let mut counts: Vec<usize> = shell.recordings().iter().map(completed).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 2]);
}

/// What was announced to Vulkan lies beside the recordings; a program that becomes another does
/// not end in between.
#[test]
fn programs_that_become_others_leave_nothing_behind() {
    let mut shell = UnderAgent::new("sh");
    shell.command.args(["-c", "exec env sh -c 'exec true'"]);
    shell.run_well();
    let left: Vec<_> =
        std::fs::read_dir(shell.directory()).expect("it is ours").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}
