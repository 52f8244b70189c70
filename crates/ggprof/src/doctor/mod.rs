//! What `ggprof doctor` finds out about a program, and about the machine.

pub(crate) mod installation;
pub(crate) mod program;
