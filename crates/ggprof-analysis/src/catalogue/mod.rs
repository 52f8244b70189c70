//! Many recordings at once: what is kept of each, and how fast the same thing went from commit to
//! commit.
//!
//! A catalogue holds no paths, arguments or hosts, only names of recordings below the directory that it
//! is of.

mod entry;
mod kept;
mod series;

pub use entry::{CatalogueEntry, Model, Speed, entry};
pub use kept::{Found, Kept, KnownFile, lines, read};
pub use series::{CommitPoint, Dimension, Question, RecordedSpeed, Series, SpeedChange, series};
