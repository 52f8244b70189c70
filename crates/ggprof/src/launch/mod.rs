//! Starting a program with the agent inside, and staying out of its way.

mod agent;
mod child;
mod preload;
mod spools;

pub(crate) use agent::find as find_agent;
pub(crate) use child::{Ended, run};
pub(crate) use preload::with_agent as preload_with_agent;
pub(crate) use spools::{Spools, process_of};
