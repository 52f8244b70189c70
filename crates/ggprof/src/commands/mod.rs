//! One file per subcommand.

mod convert;
mod generate;
mod report;
mod run;

pub(crate) use convert::convert;
pub(crate) use generate::generate;
pub(crate) use report::report;
pub(crate) use run::run;
