//! x86-64.

mod shim;

pub(crate) use shim::*;
