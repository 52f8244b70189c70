//! One file per subcommand.

mod convert;
mod diff;
mod explain;
mod export;
mod generate;
mod index;
mod merge;
mod report;
mod view;

#[cfg(target_os = "linux")]
mod attach;
#[cfg(target_os = "linux")]
mod bench;
#[cfg(target_os = "linux")]
mod ctl;
#[cfg(target_os = "linux")]
mod deliver;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod env;
#[cfg(not(target_os = "linux"))]
mod only_on_linux;
#[cfg(target_os = "linux")]
mod op_worker;
#[cfg(target_os = "linux")]
mod ops;
#[cfg(target_os = "linux")]
mod peaks;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod top;

pub(crate) use convert::convert;
pub(crate) use diff::diff;
pub(crate) use explain::explain;
pub(crate) use export::export;
pub(crate) use generate::generate;
pub(crate) use index::index;
pub(crate) use merge::merge;
#[cfg(not(target_os = "linux"))]
pub(crate) use only_on_linux::{
    attach, bench, ctl, deliver, doctor, env, op_worker, ops, peaks, run, top,
};
pub(crate) use report::report;
pub(crate) use view::view;
#[cfg(target_os = "linux")]
pub(crate) use {
    attach::attach, bench::bench, ctl::ctl, deliver::deliver, doctor::doctor, env::env,
    op_worker::op_worker, ops::ops, peaks::peaks, run::run, top::top,
};
