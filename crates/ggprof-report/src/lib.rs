//! Answers in words: documents made of tables and sentences, and the ways to show them.
//!
//! `documents/` decides what a report says, `render/` how it looks in a terminal or as markdown,
//! JSON or CSV, and `viewer/` packs a recording into a page that draws it, and `tables/` hands the
//! same facts and answers to engines for many recordings. Numbers come from `ggprof-analysis`;
//! nothing is computed here.

#![forbid(unsafe_code)]

mod caveat;
mod clock_words;
mod coverage_words;
mod document;
pub mod documents;
mod findings;
pub mod left_out_words;
pub mod live;
mod parquet;
mod pprof;
pub mod render;
mod spent_words;
pub mod tables;
pub mod text;
pub mod timeline;
pub mod units;
pub mod viewer;

pub use caveat::{Caveat, caveats, stopped_sentence};
pub use document::{Align, Block, Cell, Column, Document, Fact, Table};
pub use pprof::pprof;
