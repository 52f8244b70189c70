//! One file per subcommand.

mod bench;
mod convert;
mod ctl;
mod deliver;
mod diff;
mod doctor;
mod env;
mod explain;
mod generate;
mod peaks;
mod report;
mod run;
mod top;
mod view;

pub(crate) use bench::bench;
pub(crate) use convert::convert;
pub(crate) use ctl::ctl;
pub(crate) use deliver::deliver;
pub(crate) use diff::diff;
pub(crate) use doctor::doctor;
pub(crate) use env::env;
pub(crate) use explain::explain;
pub(crate) use generate::generate;
pub(crate) use peaks::peaks;
pub(crate) use report::report;
pub(crate) use run::run;
pub(crate) use top::top;
pub(crate) use view::view;
