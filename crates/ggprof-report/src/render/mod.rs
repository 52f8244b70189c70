//! Ways to show a document.

mod console;
mod csv;
mod html;
mod json;
mod markdown;

pub use console::{Style, console, printable};
pub use csv::csv;
pub use html::html;
pub use json::json;
pub use markdown::markdown;
