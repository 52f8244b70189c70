//! Starting a program with the agent inside, and staying out of its way.

mod agent;
mod child;
mod control;
mod recorded;
pub(crate) mod sockets;
mod spools;

pub(crate) use agent::find as find_agent;
pub(crate) use child::{Ended, run};
pub(crate) use control::Control;
use recorded::{Recorded, Standing};
pub(crate) use spools::{Spools, process_of};
