//! The agent: `LD_PRELOAD` loads it into the user's program, where it records what ggml computes.
//! It does nothing until the process uses ggml.
//!
//! How the modules handle one op:
//!
//! * `hooks` are called by ggml in place of its own functions, and call those;
//! * `observe` knows what the pointers they were given mean;
//! * `recorder` keeps the facts per thread, folds them and writes them;
//! * `devices` knows the APIs with which devices get their work, one folder for each;
//! * `ffi` holds ggml's layouts and calls, `patch` every changed pointer;
//! * `lifecycle` decides when any of it may happen, and `observe::fail_open` what happens if it
//!   goes wrong: the program goes on as if the agent were not there.
//!
//! Invariants: no hook writes to standard output, allocates on the path of an op, or lets a panic
//! out. Each hook calls the real function exactly once. The one exception is
//! `observe/serialize.rs`, which the user has to ask for, or which handles accelerators of the
//! host.

#[cfg(not(all(target_os = "linux", any(target_env = "gnu", target_env = "musl"))))]
compile_error!("the agent is written for Linux with glibc or musl");

mod arch;
mod attach;
mod c_library;
mod clock;
mod config;
pub mod control;
mod delivery;
mod devices;
mod digest;
mod fault;
mod ffi;
mod forking;
mod hooks;
mod lifecycle;
mod lock;
mod memory;
mod observe;
mod patch;
mod process_end;
mod quiet_log;
mod recorder;
mod set_once;
mod signals;
mod spawn;
#[cfg(target_env = "gnu")]
mod thread_keys;
mod unwinder;

#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = lifecycle::on_load;

#[used]
#[unsafe(link_section = ".fini_array")]
static ON_UNLOAD: extern "C" fn() = lifecycle::on_exit;
