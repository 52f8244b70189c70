//! The recording file: the bytes between the agent, which writes them from
//! inside somebody else's process, and the reader, which opens them later.
//!
//! `FORMAT.md` beside this crate is the specification; [`layout`] pins it,
//! [`writer`] fills blocks of mapped memory, [`reader`] turns any bytes at all
//! into [`record`]s and damage, [`live`] looks at a recording that is being
//! written, [`follow`] at what is new in it, [`place`] names its file, [`beside`] what else lies there, and [`layer`] tells Vulkan of
//! the agent. Making the file (creating, reserving, mapping) is the agent's work, and so is every decision about what to record; meaning is
//! given to the records by the trace model.
//!
//! What a crash leaves behind: records are committed by their first byte, which
//! is written last, so a killed process leaves whole records and at most one
//! unfinished one per block, whose first byte is still zero.

pub mod beside;
mod coverage;
pub mod follow;
pub mod layer;
pub mod layout;
pub mod live;
pub mod place;
pub mod reader;
pub mod record;
pub mod writer;

pub use reader::{Damage, Spool};
pub use record::Record;
