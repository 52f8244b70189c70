//! A recording as a self-contained page with a timeline: data, script and style in one file
//! that needs no network.
//!
//! The page itself is plain JavaScript, in `viewer/` beside the crates. Here the recording
//! is packed for it: `tables` as JSON, `events` as columns of bytes, both deflated in one
//! block that browsers do not execute. Names from the recording appear nowhere else but in
//! the title, escaped; the script puts them on the page as text only.

mod bundle;
mod columns;
mod depth;
mod device;
mod estimates;
mod events;
mod example;
mod experts;
mod history;
pub(crate) mod levels;
mod overview;
mod page;
mod pair;
mod requests;
mod signatures;
mod table_words;
mod tables;

pub use history::write_history;
pub use pair::write_pair;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use ggprof_analysis::Peaks;
use ggprof_trace::Trace;
use std::io::{self, Write};

/// Writes the page. At most `drawn` events are drawn, the longest ones; all are counted.
pub fn write(
    trace: &Trace,
    name: &str,
    peaks: Option<&Peaks>,
    drawn: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let data = BASE64_STANDARD.encode(pack(trace, name, peaks, drawn)?);
    page::write(name, &bundle::script(), bundle::style(), &data, out)
}

/// The length of the JSON in four bytes, the JSON, and the columns that it describes.
fn pack(
    trace: &Trace,
    name: &str,
    peaks: Option<&Peaks>,
    drawn: Option<usize>,
) -> io::Result<Vec<u8>> {
    let start_ns = trace.span_ns().map_or(0, |(start, _)| start);
    let (described, bytes) = events::columns(trace, start_ns).finish();
    let mut tables = tables::tables(trace, name, peaks, drawn);
    tables["columns"] = described;
    let json = serde_json::to_vec(&tables)?;
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&(json.len() as u32).to_le_bytes())?;
    packed.write_all(&json)?;
    packed.write_all(&bytes)?;
    packed.finish()
}

#[cfg(test)]
mod tests;
