//! Ways to show a document.

mod console;
mod csv;
mod json;
mod markdown;

pub use console::{Style, console, printable};
pub use csv::csv;
pub use json::json;
pub use markdown::markdown;
