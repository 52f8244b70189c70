//! The agent: brought into somebody else's process by `LD_PRELOAD`, it records
//! what ggml computes there. It does nothing until the process uses ggml.
//!
//! The way of one op through the rooms:
//!
//! * `hooks` are called by ggml in place of its own functions, and call those;
//! * `observe` knows what the pointers they were given mean;
//! * `recorder` keeps the facts per thread, folds them, writes them;
//! * `devices` knows the APIs by which devices get their work, each in its folder;
//! * `ffi` holds ggml's layouts and calls, `patch` every changed pointer;
//! * `lifecycle` says when any of it may happen, `observe::fail_open` what happens
//!   when it goes wrong: the program goes on as if we were not there.
//!
//! Invariants: no hook writes to standard output, allocates on the path of an
//! op, or lets a panic out; each hook calls the real function exactly once
//! (`observe/serialize.rs` is the one exception, and it was asked for).

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
compile_error!("the agent is written for Linux with glibc");

mod arch;
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
mod observe;
mod patch;
mod process_end;
mod quiet_log;
mod recorder;
mod spawn;
mod unwinder;

#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = lifecycle::on_load;

#[used]
#[unsafe(link_section = ".fini_array")]
static ON_UNLOAD: extern "C" fn() = lifecycle::on_exit;
