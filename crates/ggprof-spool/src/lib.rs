//! The recording file: the bytes between the agent, which writes them inside the user's process,
//! and the reader, which opens them later.
//!
//! `FORMAT.md` beside this crate is the specification. [`layout`] fixes its numbers, [`writer`]
//! fills blocks of mapped memory, [`reader`] turns any bytes into [`record`]s and damage,
//! [`scan`] does so block by block, wherever the bytes are ([`bytes`]), and
//! [`live`] looks at a recording that is being written, [`follow`] at what is new in it, and [`covered`]
//! tells from when to when it is. [`appendix`] makes blocks for what the agent
//! cannot know. [`names`] has those of files and variables, [`place`] makes them those of a process, [`beside`]
//! names the other files in a directory of recordings, and [`layer`] announces the agent to Vulkan. The agent creates,
//! reserves and maps the file, and decides what to record; the trace model gives the records their
//! meaning.
//!
//! What a crash leaves behind: a record is committed by its first byte, which is written last. So a
//! killed process leaves whole records and at most one unfinished one per block, whose first byte
//! is still zero.

pub mod appendix;
pub mod attaching;
pub mod beside;
pub mod bytes;
pub mod covered;
pub mod cpu_name;
pub mod follow;
pub mod layer;
pub mod layout;
pub mod live;
pub mod names;
pub mod place;
mod positioned;
pub mod reader;
pub mod record;
pub mod scan;

pub mod writer;

pub use reader::{Damage, Spool};
pub use record::Record;
