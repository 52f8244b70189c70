//! What `ggprof doctor` knows: of a program, and of the machine.

pub(crate) mod installation;
pub(crate) mod program;
