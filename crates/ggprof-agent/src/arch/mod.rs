//! What depends on the processor.

mod x86_64;

pub(crate) use x86_64::*;
