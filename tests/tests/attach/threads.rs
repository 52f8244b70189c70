//! Threads that must not be asked to load the agent, or that cannot be stopped.

use std::process::Command;

use ggprof_e2e::controlled::Session;
use ggprof_e2e::{built, published_ggml};

use crate::{Ready, attach, begun, is_traced, ready, said};

fn started(source: &str, arguments: &[&str]) -> Option<Ready> {
    let shared = published_ggml::libraries(published_ggml::NEWEST)?;
    Some(ready(Command::new(built::host_program(source)).arg(shared).args(arguments)))
}

#[test]
fn what_is_below_a_small_stack_stays_as_it_is() {
    for arguments in [&[][..], &["its own"]] {
        let Some(program) = started("waits_on_a_small_stack.c", arguments) else { return };
        let (_directory, session) = Session::in_new_place();
        let output = attach(&session, program.id(), &["--duration", "1ms"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("can load the agent safely"), "{}", said(&output));
        assert_eq!(program.told_to_end().status.code(), Some(0), "memory has changed");
    }
}

/// While the recording goes on, too.
#[test]
fn a_thread_that_could_not_be_stopped_is_left_alone() {
    let Some(program) = started("waits_in_vfork.c", &[]) else { return };
    let (_directory, session) = Session::in_new_place();
    let pid = program.id().to_string();
    let attached = begun(&mut session.ggprof(&["attach", &pid, "--no-sensors", "-o", "p.ggprof"]));
    assert!(!is_traced(program.id()));
    let (code, words) = attached.end();
    assert_eq!(code, Some(0), "{words}");
    assert_eq!(program.told_to_end().status.code(), Some(0));
}

/// As some that start other programs leave them.
#[test]
fn ggprof_may_have_been_started_with_blocked_signals() {
    let Some(program) = started("waits_in_vfork.c", &[]) else { return };
    let (_directory, session) = Session::in_new_place();
    let pid = program.id().to_string();
    let ggprof = session.ggprof(&["attach", &pid, "--no-sensors", "--duration", "50ms"]);
    let mut blocked = Command::new("env");
    blocked.arg("--block-signal").arg(ggprof.get_program()).args(ggprof.get_args());
    blocked.envs(ggprof.get_envs().filter_map(|(name, value)| Some((name, value?))));
    blocked.current_dir(session.file(""));
    let output = blocked.output().expect("env starts");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(program.told_to_end().status.code(), Some(0));
}
