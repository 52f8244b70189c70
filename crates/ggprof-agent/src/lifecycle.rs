//! When the agent may do what: how events in the life of the process change the state in
//! `recorder::current`.
//!
//! * **fork**: a child of an armed parent stays armed and makes its own file when it uses ggml. So
//!   does a child of a recording parent, with all that the parent knows of ggml, unless it cannot
//!   be followed (`forking`): then it counts itself in the parent's file.
//! * **exec**: the new program inherits `LD_PRELOAD` and starts at the first state.
//! * **exit**: the end is stamped into the header. Hooks that run later still record, because the
//!   file stays mapped. The profile for `GGML_PROFILE` is written (`delivery`), also at `_exit`.
//! * **abort, kill**: nothing runs and nothing is needed; what was committed is in the file's
//!   pages.
//! * **opened later**, as a Vulkan layer or by a program that uses the C API: the agent is late,
//!   and inert until the program calls it (`patch::load_order`). It cannot be unloaded.
//! * **attached**: `ggprof attach` opens the agent in a program that runs, and calls it (`attach`).
//! * **a second agent** in the process, from another installation: the first one in the order of
//!   symbols records, the other one passes every call on.
//! * **nothing**: most processes that a recorded program starts never use ggml. What they run of the
//!   agent lies together (`.text.asleep`), and so does what they write (`.data.asleep`), because each
//!   page that a process touches costs it a microsecond.
//! * **dlclose** of ggml: `hooks::library` and `hooks::real_function` notice, because every call of
//!   `dlclose` arrives at `hooks::unloading`.

use std::ffi::CStr;

use ggprof_spool::attaching::{AttachAnswer, Change};
use ggprof_spool::layout::Control;

use crate::config::{Config, Environment, Purpose};
use crate::fault::fault_point;
use crate::hooks::{BACKEND_HOOKS, late, library, linked_in, opened};
use crate::observe::this_thread::ThisThread;
use crate::observe::{backends, device_api, fail_open};
use crate::patch::{self, exports, load_order, loaded_object, loader, standing};
use crate::recorder::Recorder;
use crate::recorder::current::{self, Duties};
use crate::{clock, devices, forking, quiet_log};

/// The symbol by which agents know each other (`control`).
pub(crate) const SYMBOL: &CStr = c"ggprof_agent_control";

const DUTIES: Duties =
    Duties { understand: devices::understand, after_last_scheduler: between_schedulers };

const NOTHING: &[u8] =
    b"nothing is recorded, because of an internal fault; the program itself is not affected";

/// Runs when the agent is loaded: before `main`, or at any time where it is opened. In nearly all
/// processes this is all of the agent that ever runs.
#[unsafe(link_section = ".text.asleep")]
pub(crate) extern "C" fn on_load() {
    fail_open::contained((), be_loaded);
}

#[unsafe(link_section = ".text.asleep")]
fn be_loaded() {
    loader::begin();
    if runs_with_more_rights() || exports::first(SYMBOL).is_some_and(is_anothers) {
        return;
    }
    if !fail_open::contained(false, load_order::came_with_program) {
        return current::come_late();
    }
    if let Some(environment) = Environment::that_asks(devices::reads) {
        // A panic must not print: the guard reports it in our own words. This is
        // our copy of the standard library, not the program's.
        std::panic::set_hook(Box::new(|_| {}));
        let looked_around = fail_open::contained(false, || {
            look_around(environment);
            true
        });
        if !looked_around && !current::is_on() {
            quiet_log::say(&[NOTHING]);
        }
    }
}

/// Whether another agent is in the process, and comes first.
fn is_anothers(control: usize) -> bool {
    !loaded_object::is_ours(control)
}

#[unsafe(link_section = ".text.asleep")]
fn look_around(environment: Environment) {
    fault_point!();
    fail_open::contained((), || prepare_environment(&environment));
    device_api::register(devices::APIS);
    forking::prepare();
    current::arm(environment, DUTIES);
    fault_point!();
    fail_open::guard((), |_| opened::look());
}

/// What ggml's libraries are to find in the environment.
#[unsafe(link_section = ".text.asleep")]
fn prepare_environment(environment: &Environment) {
    fault_point!();
    devices::APIS.iter().for_each(|api| api.prepare_environment(environment));
}

/// Runs at a normal exit. If one of the steps fails, the others are still taken.
#[unsafe(link_section = ".text.asleep")]
pub(crate) extern "C" fn on_exit() {
    if fail_open::contained(false, has_nothing_to_do) {
        return;
    }
    fail_open::contained((), || {
        fault_point!();
        if let Some(recorder) = current::recording() {
            ThisThread::with(|this| recorder.stamp_end(this.run.get()));
        }
    });
    withdraw();
    fail_open::contained((), || {
        fault_point!();
        if let Some((purpose, recorder)) = current::purpose() {
            finish(purpose, recorder);
        }
    });
    fail_open::contained((), say_if_all_is_missing);
}

#[unsafe(link_section = ".text.asleep")]
fn has_nothing_to_do() -> bool {
    let has_left_something = || devices::APIS.iter().any(|api| api.has_left_something());
    let is_quiet = current::faults() == 0 && linked_in::refused().is_none();
    current::recorder().is_none() && is_quiet && !has_left_something()
}

/// Runs when the program ends without exit handlers, perhaps in a signal handler or in
/// a child that borrows its parent's memory.
pub(crate) fn before_immediate_exit() {
    withdraw();
    fail_open::contained((), || {
        fault_point!();
        let Some((purpose, recorder)) = current::purpose() else { return };
        if matches!(purpose, Purpose::Profile(_)) {
            recorder.spool.header.set_end(clock::ticks());
        }
        finish(purpose, recorder);
    });
    fail_open::contained((), say_if_all_is_missing);
}

/// Removes what the agent left outside of the process, such as a manifest.
fn withdraw() {
    devices::APIS.iter().for_each(|api| fail_open::contained((), || api.withdraw()));
}

/// If there is a recording, the recording says so; a forked child leaves it to the process that forked
/// it. Whether it could be recorded is not asked here: to find that out takes another process.
fn say_if_all_is_missing() {
    let may_be = || current::faults() > 0 || linked_in::refused().is_some();
    if current::recorder().is_some() || !may_be() || !current::is_asked_itself() {
        return;
    }
    if !current::is_on() {
        return;
    }
    if current::faults() > 0 {
        quiet_log::say(&[NOTHING]);
    }
    if let Some((library, reason)) = linked_in::refused() {
        quiet_log::say(&[
            b"nothing is recorded of the ggml in ",
            library.to_bytes(),
            b": ",
            reason.as_bytes(),
        ]);
    }
}

fn finish(purpose: &Purpose, recorder: &Recorder) {
    match purpose {
        Purpose::Launcher => {}
        Purpose::Profile(delivery) => delivery.at_end(recorder),
        Purpose::Library => recorder.spool.remove(),
    }
}

/// The last scheduler was freed.
fn between_schedulers() {
    if let Some((Purpose::Profile(delivery), recorder)) = current::purpose() {
        devices::APIS.iter().for_each(|api| api.deliver());
        delivery.between_schedulers(recorder);
    }
}

/// The program itself asks to be recorded: from inert to armed. Where it opened the agent,
/// what the environment wants was not looked at yet.
pub(crate) fn arm_for_library() {
    let is_late = current::is_late();
    if !is_late && !current::is_inert() {
        return;
    }
    // Until now nothing was hooked, so the program may be computing, unseen.
    standing::note_running();
    let asked = is_late.then(|| Environment::that_asks(devices::reads)).flatten();
    let is_asked = asked.is_some();
    let environment = asked.unwrap_or_else(|| Environment::copy(devices::reads));
    let config = match is_asked {
        true => Config::understand(&environment),
        false => Config::for_library(&environment),
    };
    match config.and_then(|config| devices::understand(&environment).map(|()| config)) {
        Ok(config) => {
            device_api::register(devices::APIS);
            forking::prepare();
            current::arm_with(config, DUTIES);
        }
        Err(problem) => quiet_log::say(&[b"nothing is recorded: ", problem.as_bytes()]),
    }
}

/// `ggprof attach` wants a recording of a program that runs. Called inside a guard. Changes
/// pointers right away, each in one step, and returns the changes of code that have to wait.
pub(crate) fn attach(environment: Environment) -> AttachAnswer {
    let config = Config::for_running(&environment)?;
    if current::recorder().is_some() {
        let recorder = current::record_again(config)?;
        return Ok(to_be_made(standing::not_made_yet(), recorder));
    }
    if current::is_off() {
        return Err("an earlier recording of it ended with a fault".into());
    }
    if !current::is_late() && !current::is_inert() {
        return Err("it is already set to be recorded once it uses ggml".into());
    }
    devices::understand(&environment)?;
    std::panic::set_hook(Box::new(|_| {}));
    device_api::register(devices::APIS);
    fault_point!();
    forking::prepare();
    current::arm_held(config, DUTIES);
    fault_point!();
    // Calls are led here last. The program's other threads make them at once, and what comes first
    // decides how a library is seen.
    let changes = standing::collect(|| {
        library::hook_running();
        fault_point!();
        opened::look();
        fault_point!();
        late::lead_all_calls_here();
    });
    fault_point!();
    // At once, so that the `ggprof attach` that asked can stop it, and nothing begins after it has
    // gone.
    let recorder = current::start_recording().ok_or("its recording cannot be made")?;
    Ok(to_be_made(changes, recorder))
}

/// The recording begins when these are made: before, graphs would be seen without their ops.
fn to_be_made(changes: Vec<Change>, recorder: &Recorder) -> Vec<Change> {
    if changes.is_empty() {
        recorder.release();
    }
    changes
}

/// `ggprof attach` could not make the changes of code. What was prepared for them is given up, and ops
/// are seen by other means. Called inside a guard, before anything is recorded.
pub(crate) fn go_without_changes(this: &ThisThread) {
    library::give_up_waiting();
    fault_point!();
    patch::linked_in::give_up_waiting();
    fault_point!();
    backends::look_anew(this, &BACKEND_HOOKS);
}

/// Starts or stops a recording that belongs to the program itself.
pub(crate) fn record_for_library(on: bool) {
    if let Some((Purpose::Library, recorder)) = current::purpose() {
        recorder.spool.header.set_control(if on { Control::Record } else { Control::Stop });
    }
}

/// Whether the program has rights that its user lacks: then the environment, which the user
/// controls, must not decide where the agent writes.
fn runs_with_more_rights() -> bool {
    // SAFETY: a question to the system.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}
