//! Real programs under random hazards, each run alone and recorded: what they print and how they
//! end must be the same, and what was recorded readable, with its losses said.
//!
//! A run follows from its seed: the program (`programs`), the hazards (`kinds`) and their
//! numbers. Hazards are conditions that `host-programs/under_hazards.c` makes and then becomes
//! the program (`arrangement`), or are done to it while it runs (`disturbance`). Moments differ
//! from run to run all the same. `verdict` compares; what a hazard excuses is data (`excuses`).

mod arrangement;
mod baseline;
mod campaign;
mod disturbance;
mod excuses;
mod hazards;
mod kinds;
mod output;
mod processes;
mod programs;
mod ran;
mod random;
mod recorded;
mod round;
mod tally;
mod verdict;

pub use campaign::Campaign;
pub use hazards::Hazard;
pub use programs::Program;
pub use round::{Choice, Finding};
