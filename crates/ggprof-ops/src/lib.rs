//! Single ops on any libggml, through its public C API and nothing else.
//!
//! All of this runs in a process of its own, which the command starts for each library or op: a
//! library may end its process whenever something is not to its liking.

mod data;
mod device;
mod ggml;
mod layout;
mod library;
mod measure;
mod numbers;
mod plan;
mod trial;

pub use measure::measure;
pub use numbers::list as list_numbers;
pub use trial::{From, Libraries, Node, Shape, Source, Trial, TrialTime};
