//! One file per subcommand.

mod convert;
mod generate;
mod report;

pub(crate) use convert::convert;
pub(crate) use generate::generate;
pub(crate) use report::report;
